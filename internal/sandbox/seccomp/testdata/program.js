const { Worker } = require("worker_threads"), { execFileSync, spawn } = require("child_process");
const fs = require("fs"), net = require("net"), os = require("os"), dns = require("dns"), zlib = require("zlib");
os.networkInterfaces(); os.cpus();
if (execFileSync("sh", ["-c", "echo $((6*7))"]).toString() !== "42\n") throw new Error("child");
const wait = f => new Promise((ok, no) => f(ok, no));
(async () => {
  await wait((ok, no) => new Worker("require('worker_threads').parentPort.postMessage(1)", { eval: true }).on("message", ok).on("error", no));
  await wait((ok, no) => {
    const s = net.createServer(c => c.end("hi")).listen(0, "127.0.0.1", () =>
      net.connect(s.address().port, "127.0.0.1").on("data", () => {}).on("error", no).on("end", () => s.close(ok)));
  });
  await fs.promises.writeFile("f", zlib.gzipSync(Buffer.alloc(100000)));
  await fs.promises.cp("f", "g"); fs.watch("f").close();
  await wait((ok, no) => spawn("cat", ["f"]).on("exit", ok).on("error", no).stdout.resume());
  await wait(ok => dns.lookup("127.0.0.1", ok));
  const m = new WebAssembly.Memory({ initial: 1, maximum: 100, shared: true });
  Atomics.wait(new Int32Array(m.buffer), 0, 0, 1);
  console.log("node is fine");
})();
