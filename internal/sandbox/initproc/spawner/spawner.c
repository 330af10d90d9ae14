// The spawner: a static program without libc that makes the processes of runs.
// doc.go draws its protocol; table.go is the other side of struct table.
//
// It is started once per slot and holds nothing of the engine: no memory, no
// environment, no descriptor but one control socket. Everything a run needs
// comes as a table of system calls that the engine prepared; this file only
// walks it. That keeps every policy decision in Go and this program small
// enough to be read in one sitting.

#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>

#define NULL ((void *)0)
#define SIGKILL 9
#define SIGCHLD 17
#define EINTR 4
#define EPROTO 71
#define AF_UNIX 1
#define SOCK_SEQPACKET 5
#define SOL_SOCKET 1
#define SCM_RIGHTS 1
#define SOCK_CLOEXEC 02000000
#define MSG_NOSIGNAL 0x4000
#define MSG_CMSG_CLOEXEC 0x40000000

#define CTL 63               // where the control socket is kept
#define PROC 62              // the host's /proc, for id maps; known to table.go
#define MAXFD 16             // descriptors that one request may carry
#define TABLE 0x100000000ULL // where every table is mapped, known to table.go
#define MAGIC 0x626a7232     // "bjr2": changes with the layout of any struct below

// A request: one message on the control socket, its descriptors beside it. They
// arrive as 0, 1, 2 ... in the order sent, because nothing else is open. The first
// request has no status_fd (-1): its table is walked by the spawner itself, which
// so moves into the root that all its runs share.
struct request {
	__u32 magic;
	__u32 nfds;
	__u64 flags;     // of clone: the namespaces
	__u64 table_len;
	__s32 table_fd;  // indices into the descriptors
	__s32 status_fd;
	__s32 cgroup_fd; // -1: stay in the spawner's group
	__u32 deny_setgroups;
	char uid_map[64]; // written when the child asks, NUL-terminated
	char gid_map[64];
};

// A kill request is a message of four bytes.
#define KILL 0x6c6c696b

// What the engine is told, on the control socket and on the status pipe alike.
struct record {
	__u32 kind;
	__s32 a;
	__s64 b;
	__s64 user_us, sys_us, maxrss_kb, minflt;
};
enum { SPAWNED = 1, REAPED, REFUSED, FAILED, STARTED, EXITED, READY };

struct op {
	__u32 nr;
	__u32 flags;
	__u64 arg[6];
};
enum {
	OP_IGNORE = 1,   // an error is no failure
	OP_STORE = 2,    // keep the result
	OP_FULL = 4,     // the result must equal the third argument (a whole write)
	OP_USE0 = 0x100, // use the kept result as argument 0 (<< n for argument n)
};
// Numbers above any system call.
enum {
	OP_MAPS = 0x10000, // let the spawner write the id maps, and wait
	OP_ALIVE,          // stop here if the spawner is gone
	OP_FORK,           // the rest of the table is for the program's process
};

struct table {
	__u32 magic;
	__u32 nops;
	__u64 ops;
};

struct iovec { void *base; unsigned long len; };
struct msghdr {
	void *name; __u32 namelen; struct iovec *iov; unsigned long iovlen;
	void *control; unsigned long controllen; __u32 flags;
};
struct cmsg { unsigned long len; __s32 level, type; __s32 fd[MAXFD]; };
struct pollfd_ { __s32 fd; __s16 events, revents; };
struct statfs_ { __s64 type, bsize, blocks, bfree, bavail, files, ffree, rest[10]; };
struct rusage_ { __s64 utime[2], stime[2], maxrss, ix, id, is, minflt, rest[9]; };

#if defined(__x86_64__)
static long sys(long n, long a, long b, long c, long d, long e, long f) {
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}
#define CLONE_ARGS(flags, pidfd) (flags), 0, (long)(pidfd), 0, 0, 0
__asm__(".globl _start\n_start: xor %ebp,%ebp\n and $-16,%rsp\n call spawner_main\n hlt\n");
// clone_vm(fn, stack): a child in the same memory runs fn on its own stack while
// this process waits for its exec or exit (CLONE_VM|CLONE_VFORK|SIGCHLD).
__asm__("clone_vm: and $-16,%rsi\n sub $16,%rsi\n mov %rdi,(%rsi)\n"
	" mov $0x4111,%edi\n xor %edx,%edx\n xor %r10d,%r10d\n xor %r8d,%r8d\n mov $56,%eax\n syscall\n"
	" test %rax,%rax\n jnz 1f\n xor %ebp,%ebp\n pop %rax\n call *%rax\n hlt\n1: ret\n");
#elif defined(__aarch64__)
static long sys(long n, long a, long b, long c, long d, long e, long f) {
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
#define CLONE_ARGS(flags, pidfd) (flags), 0, (long)(pidfd), 0, 0, 0
__asm__(".globl _start\n_start: mov x29,#0\n mov x30,#0\n bl spawner_main\n brk #1\n");
__asm__("clone_vm: and x1,x1,#-16\n str x0,[x1,#-16]!\n mov x0,#0x4111\n mov x2,#0\n mov x3,#0\n mov x4,#0\n"
	" mov x8,#220\n svc 0\n cbnz x0,1f\n mov x29,#0\n ldr x1,[sp],#16\n blr x1\n brk #1\n1: ret\n");
#else
#error "no system call convention for this architecture"
#endif
long clone_vm(void (*fn)(void), void *stack);

#define S0(n) sys(n, 0, 0, 0, 0, 0, 0)
#define S1(n, a) sys(n, (long)(a), 0, 0, 0, 0, 0)
#define S2(n, a, b) sys(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define S3(n, a, b, c) sys(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define S4(n, a, b, c, d) sys(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define S5(n, a, b, c, d, e) sys(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define S6(n, a, b, c, d, e, f) sys(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static void die(int code) {
	for (;;) S1(__NR_exit_group, code);
}

static void tell(int fd, __u32 kind, __s32 a, __s64 b, struct rusage_ *ru) {
	struct record r;
	r.kind = kind; r.a = a; r.b = b;
	r.user_us = ru ? ru->utime[0] * 1000000 + ru->utime[1] : 0;
	r.sys_us = ru ? ru->stime[0] * 1000000 + ru->stime[1] : 0;
	r.maxrss_kb = ru ? ru->maxrss : 0;
	r.minflt = ru ? ru->minflt : 0;
	if (fd == CTL) S6(__NR_sendto, fd, &r, sizeof r, MSG_NOSIGNAL, 0, 0);
	else S3(__NR_write, fd, &r, sizeof r);
}

// ---------------------------------------------------------------- the child

static struct request req;
static int sync_fd;             // to the spawner, from the child
static int report_fd;           // where a failed call is reported
static struct table *const table = (struct table *)TABLE;
static struct op *next;         // where OP_FORK left off
static long kept;
static char stack[8192] __attribute__((aligned(16)));

static void fail(struct op *o, long err) {
	tell(report_fd, FAILED, (__s32)(o - (struct op *)table->ops), err, NULL);
	die(126);
}

static void ask_maps(struct op *o) {
	char c = 'm';
	if (S3(__NR_write, sync_fd, &c, 1) != 1 || S3(__NR_read, sync_fd, &c, 1) != 1) die(126);
	if (c != 0) fail(o, (unsigned char)c);
}

// The order matters: the parent-death signal is armed first, then we look. If
// the spawner died before, its end of the socket hangs up; if it dies later, the
// signal comes.
static void look_alive(void) {
	struct pollfd_ p;
	__s64 zero[2] = {0, 0};
	p.fd = sync_fd; p.events = 0; p.revents = 0;
	S5(__NR_ppoll, &p, 1, zero, NULL, 0);
	if (p.revents & (POLLHUP | POLLERR)) die(126);
}

static void walk(void);
static void program(void) { walk(); die(126); }

// The reaper: PID 1 of the run. It keeps the status pipe alone, passes on the
// program's raw wait status and ends; the kernel then ends everything that is
// left in the namespace.
static void reap(long program_pid) {
	struct rusage_ ru, own;
	struct statfs_ fs;
	__s32 status;
	__s64 full = 0;
	S3(__NR_close_range, 0, req.status_fd - 1, 0);
	S3(__NR_close_range, req.status_fd + 1, ~0U, 0);
	tell(report_fd, STARTED, 0, 0, NULL);
	for (;;) {
		long pid = S4(__NR_wait4, -1, &status, __WALL, &ru);
		if (pid == program_pid) break;
		if (pid < 0 && pid != -EINTR) die(125);
	}
	S2(__NR_getrusage, 0 /* RUSAGE_SELF */, &own);
	ru.minflt += own.minflt; // the price of the sandbox belongs to the run
	// The last look that anybody can have at the run's file system: is it full?
	if (S2(__NR_statfs, "/workspace", &fs) == 0) full = (fs.bfree == 0) | (fs.ffree == 0) << 1;
	tell(report_fd, EXITED, status, full, &ru);
	die(0);
}

static void walk(void) {
	struct op *end = (struct op *)table->ops + table->nops;
	struct op *o;
	for (o = next; o < end; o++) {
		long a[6], r;
		int i;
		if (o->nr == OP_MAPS) { ask_maps(o); continue; }
		if (o->nr == OP_ALIVE) { look_alive(); continue; }
		if (o->nr == OP_FORK) {
			next = o + 1;
			r = clone_vm(program, stack + sizeof stack);
			if (r < 0) fail(o, -r);
			reap(r);
		}
		for (i = 0; i < 6; i++) a[i] = (o->flags & (OP_USE0 << i)) ? kept : (long)o->arg[i];
		r = sys(o->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (r < 0 && r >= -4095 && !(o->flags & OP_IGNORE)) fail(o, -r);
		if ((o->flags & OP_FULL) && r != a[2]) fail(o, 28 /* ENOSPC */);
		if (o->flags & OP_STORE) kept = r;
	}
}

static void walk_table(void) {
	long r = S6(__NR_mmap, TABLE, req.table_len, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE | MAP_POPULATE, req.table_fd, 0);
	if (r != (long)TABLE || table->magic != MAGIC) {
		tell(report_fd, FAILED, -1, r < 0 ? -r : EPROTO, NULL);
		die(126);
	}
	next = (struct op *)table->ops;
	walk();
}

static void child(void) {
	S1(__NR_close, CTL);
	report_fd = req.status_fd;
	walk_table();
	die(126); // a table without OP_FORK
}

// -------------------------------------------------------------- the spawner

static int length(const char *s) {
	int n = 0;
	while (s[n]) n++;
	return n;
}

// write_file writes s to <pid>/<name> in the host's /proc.
static long write_file(int pid, const char *name, const char *s) {
	char path[64], digits[12];
	int n = 0, d = 0;
	long fd, r;
	do digits[d++] = '0' + pid % 10; while (pid /= 10);
	while (d) path[n++] = digits[--d];
	path[n++] = '/';
	for (; *name; name++) path[n++] = *name;
	path[n] = 0;
	fd = S4(__NR_openat, PROC, path, O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0) return -fd;
	r = S3(__NR_write, fd, s, length(s));
	S1(__NR_close, fd);
	return r < 0 ? -r : 0;
}

static void write_maps(int fd, int pid) {
	char c;
	long err;
	if (S3(__NR_read, fd, &c, 1) != 1) return;
	err = req.deny_setgroups ? write_file(pid, "setgroups", "deny") : 0;
	if (!err) err = write_file(pid, "gid_map", req.gid_map);
	if (!err) err = write_file(pid, "uid_map", req.uid_map);
	c = (char)err;
	S3(__NR_write, fd, &c, 1);
}

static long make(int *pidfd) {
	if (req.cgroup_fd < 0)
		return sys(__NR_clone, CLONE_ARGS(req.flags | CLONE_PIDFD | SIGCHLD, pidfd));
	struct { __u64 flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup; } a;
	char *p = (char *)&a;
	unsigned i;
	for (i = 0; i < sizeof a; i++) ((volatile char *)p)[i] = 0;
	a.flags = req.flags | CLONE_PIDFD | CLONE_INTO_CGROUP;
	a.pidfd = (__u64)pidfd;
	a.exit_signal = SIGCHLD;
	a.cgroup = (__u64)req.cgroup_fd;
	return S2(__NR_clone3, &a, sizeof a);
}

static void serve(void) {
	int pair[2], pidfd = -1, one;
	long pid;
	struct pollfd_ p[3];
	struct rusage_ ru;
	__s32 status;

	if (S4(__NR_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) die(1);
	sync_fd = pair[1];
	pid = make(&pidfd);
	if (pid == 0) {
		S1(__NR_close, pair[0]);
		child();
	}
	// Nothing of the run may stay open here, or its pipes would never end.
	S3(__NR_close_range, 0, req.nfds - 1, 0);
	S1(__NR_close, pair[1]);
	if (pid < 0) {
		S1(__NR_close, pair[0]);
		tell(CTL, REFUSED, 0, -pid, NULL);
		return;
	}
	tell(CTL, SPAWNED, (__s32)pid, 0, NULL);
	p[0].fd = CTL; p[1].fd = pidfd; p[2].fd = pair[0];
	p[0].events = p[1].events = p[2].events = POLLIN;
	for (;;) {
		long n = S5(__NR_ppoll, p, 3, NULL, NULL, 0);
		if (n < 0) {
			if (n == -EINTR) continue;
			die(1);
		}
		if (p[2].fd >= 0 && p[2].revents) {
			if (p[2].revents & POLLIN) write_maps(pair[0], (int)pid);
			if (p[2].revents & (POLLHUP | POLLERR)) p[2].fd = -1;
		}
		if (p[0].revents) {
			n = S6(__NR_recvfrom, CTL, &one, sizeof one, 0, NULL, NULL);
			S4(__NR_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
			if (n != sizeof one || one != KILL) die(0); // the engine is gone
		}
		if (p[1].revents) break;
	}
	S4(__NR_wait4, pid, &status, __WALL, &ru);
	S1(__NR_close, pidfd);
	S1(__NR_close, pair[0]);
	tell(CTL, REAPED, status, 0, &ru);
}

static void settle(void) {
	report_fd = CTL;
	walk_table();
	S2(__NR_munmap, TABLE, req.table_len);
	S3(__NR_close_range, 0, req.nfds - 1, 0);
	tell(CTL, READY, 0, 0, NULL);
}

void spawner_main(void) {
	int i;
	long proc;
	struct { void *handler; unsigned long flags; void *restorer; __u64 mask; } dfl = {0};
	__u64 none = 0;
	if (S3(__NR_dup3, 0, CTL, O_CLOEXEC) < 0) die(1);
	S3(__NR_close_range, 0, CTL - 1, 0);
	S3(__NR_close_range, CTL + 1, ~0U, 0);
	proc = S4(__NR_openat, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (proc < 0 || S3(__NR_dup3, proc, PROC, O_CLOEXEC) < 0) die(1);
	S1(__NR_close, proc);
	for (i = 1; i <= 64; i++) S4(__NR_rt_sigaction, i, &dfl, NULL, 8);
	S4(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &none, NULL, 8);
	for (;;) {
		struct iovec v;
		struct msghdr m;
		struct cmsg c;
		long n;
		__u32 k, ok = 1;
		v.base = &req; v.len = sizeof req;
		m.name = NULL; m.namelen = 0; m.iov = &v; m.iovlen = 1;
		m.control = &c; m.controllen = sizeof c; m.flags = 0;
		n = S3(__NR_recvmsg, CTL, &m, MSG_CMSG_CLOEXEC);
		if (n == -EINTR) continue;
		if (n <= 0) die(0); // the engine is gone
		if (n == 4) continue; // a kill that came after the end
		if (n != sizeof req || req.magic != MAGIC || req.nfds > MAXFD || req.nfds < 1) die(2);
		if (m.controllen < 16 || c.len != 16 + 4 * (unsigned long)req.nfds || c.type != SCM_RIGHTS || c.level != SOL_SOCKET) die(2);
		for (k = 0; k < req.nfds; k++) ok &= c.fd[k] == (__s32)k;
		if (!ok) die(2);
		if (req.status_fd < 0) settle();
		else serve();
	}
}
