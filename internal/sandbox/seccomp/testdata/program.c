#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *p) { *(double *)p = sqrt(*(double *)p); return 0; }
int main(void) {
	double x = 1764;
	pthread_t t;
	if (pthread_create(&t, 0, work, &x) || pthread_join(t, 0)) return 1;
	pid_t c = fork();
	if (c == 0) _exit(5);
	int status;
	if (waitpid(c, &status, 0) != c || WEXITSTATUS(status) != 5) return 2;
	if (system("true")) return 3;
	if (unshare(CLONE_NEWUSER) != -1 || errno != EPERM) return 4;
	printf("%.0f\n", x);
	return 0;
}
