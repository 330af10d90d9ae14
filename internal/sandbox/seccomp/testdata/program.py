import asyncio, concurrent.futures, json, mmap, multiprocessing, os, select, shutil, signal, socket, sqlite3
import subprocess, sys, tempfile, threading, time


def work(n):
    return n * n


def main():
    assert json.loads(json.dumps({"a": [1, 2]})) == {"a": [1, 2]}

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(50))) == [n * n for n in range(50)]

    out = subprocess.run(["sh", "-c", "cat; exit 3"], input=b"hello", capture_output=True)
    assert (out.stdout, out.returncode) == (b"hello", 3), out

    server = socket.create_server(("127.0.0.1", 0))
    def serve():
        c, _ = server.accept()
        with c:
            c.sendall(c.recv(100).upper())
    threading.Thread(target=serve).start()
    with socket.create_connection(server.getsockname()) as c:
        c.sendall(b"abc")
        assert c.recv(100) == b"ABC"
    a, b = socket.socketpair()
    a.send(b"x")
    assert select.select([b], [], [], 1)[0] == [b]
    assert socket.getaddrinfo("127.0.0.1", 80)
    socket.if_nameindex()
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        raise SystemExit("a packet socket was made")
    except OSError:
        pass

    async def waits():
        p = await asyncio.create_subprocess_exec("true")
        await asyncio.gather(p.wait(), asyncio.sleep(0.001), asyncio.to_thread(work, 3))
    asyncio.run(waits())

    d = tempfile.mkdtemp()
    p = os.path.join(d, "f")
    os.mkfifo(p + "ifo")
    os.mknod(p + "reg")
    with open(p, "w+b") as f:
        f.truncate(4096)
        m = mmap.mmap(f.fileno(), 4096)
        m[:3] = b"abc"
        m.flush()
        os.fsync(f.fileno())
    os.sync()
    os.chmod(p, 0o600); os.symlink(p, p + "l"); os.link(p, p + "h"); os.rename(p, p + "2"); os.utime(p + "2")
    shutil.copyfile(p + "2", p + "3")
    db = sqlite3.connect(os.path.join(d, "db"))
    db.execute("pragma journal_mode=wal"); db.execute("create table t(x)"); db.commit()
    shutil.rmtree(d)

    for method in "fork", "spawn":
        ctx = multiprocessing.get_context(method)
        q = ctx.SimpleQueue()
        child = ctx.Process(target=q.put, args=(7,))
        child.start()
        assert q.get() == 7
        child.join()

    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    time.sleep(0.01)
    os.memfd_create("m"); os.getrandom(8); os.sched_getaffinity(0); os.nice(0); os.getloadavg()
    try:
        os.mknod("device", 0o020600, os.makedev(1, 3))
        raise SystemExit("a device was made")
    except PermissionError:
        pass
    print("python is fine")


if __name__ == "__main__":
    main()
