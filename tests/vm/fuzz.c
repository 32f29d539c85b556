// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random commands: processes of some threads each send the module what fuzz-make.c makes up, over
 * descriptors of all kinds, while others write to the same memory, close the same descriptors,
 * fork, and are killed. What a command returns is not looked at. The log of the kernel is the judge
 * and, at the end, a bus that still works and memory that is back.
 *
 * KDBUS_FUZZ_STEPS says how many commands, KDBUS_FUZZ_SEED where chance begins; it is printed. The
 * same seed makes up the same commands; what order they meet in is up to the machine.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROCESSES    4
#define THREADS	     3
#define STEPS	     60000
#define FDS_MAX	     64
#define FDS_OURS     24 /* what lies above has been received, most likely */
#define LIFE	     400 /* commands until a process is killed, on average */
#define STUCK_MS     200 /* without a command: all wait for each other */
#define SECONDS	     2900 /* only end a hang: as many commands as one likes take their time */
#define CLOSED_EVERY 64

struct fuzz_world *fuzz_world;

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

/* ---- what is no command ---- */

static int open_something(struct fuzz *f)
{
	static const char *const names[] = { "control", "0-fuzz-0/bus", "0-fuzz-1/bus",
					     "0-fuzz-0/0-fuzz-1" };
	char path[200];

	switch (fuzz_below(f, 4)) {
	case 0:
		snprintf(path, sizeof(path), ROOT "/%s", names[fuzz_below(f, 4)]);
		break;
	case 1:
		snprintf(path, sizeof(path), "%s/0-fuzz-%u", bus_dir, fuzz_below(f, 3));
		break;
	default:
		snprintf(path, sizeof(path), "%s", bus_path);
	}
	return open(path, (fuzz_below(f, 16) ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
}

/* Also one that another thread is using */
static void replace_fd(struct fuzz *f)
{
	int *slot = &fuzz_fds[fuzz_below(f, FUZZ_FDS)], fd = *slot;

	*slot = open_something(f);
	if (fd > 2)
		close(fd);
}

static void use_pool(struct fuzz *f)
{
	size_t size = (size_t)4096 << fuzz_below(f, 6);
	int prot = fuzz_below(f, 8) ? PROT_READ : PROT_READ | PROT_WRITE;
	volatile char *pool;

	pool = mmap(NULL, size, prot, fuzz_below(f, 2) ? MAP_SHARED : MAP_PRIVATE, fuzz_fd(f), 0);
	if (pool == MAP_FAILED)
		return;
	/* what is mapped privately may be written; behind the end of the pool is nothing */
	if (size == 4096)
		(void)pool[fuzz_below(f, 4096)];
	munmap((void *)pool, size);
}

static void use_file_system(struct fuzz *f)
{
	char path[200];
	struct stat st;

	snprintf(path, sizeof(path), "%s/0-fuzz-%u", fuzz_below(f, 2) ? bus_dir : ROOT,
		 fuzz_below(f, 3));
	switch (fuzz_below(f, 7)) {
	case 0:
		stat(path, &st);
		break;
	case 1:
		chmod(path, fuzz_below(f, 0777));
		break;
	case 2:
		unlink(path);
		break;
	case 3:
		mkdir(path, 0777);
		break;
	case 4:
		rename(path, bus_path);
		break;
	case 5:
		truncate(path, fuzz_below(f, 10000));
		break;
	default:
		if (chown(path, fuzz_below(f, 3), fuzz_below(f, 3)))
			return;
	}
}

static void poll_all(void)
{
	struct pollfd p[FUZZ_FDS];

	for (int i = 0; i < FUZZ_FDS; i++)
		p[i] = (struct pollfd){ .fd = fuzz_fds[i], .events = POLLIN | POLLOUT };
	poll(p, FUZZ_FDS, 0);
}

/* While a command of another thread is being read */
static void scribble(struct fuzz *f)
{
	struct fuzz_memory *other = fuzz_memory[fuzz_below(f, THREADS)];
	struct buf *b = fuzz_below(f, 2) ? &other->command : &other->message;

	for (int i = 0; i < 200; i++)
		*(volatile uint64_t *)&b->words[fuzz_below(f, 32)] = fuzz_value(f);
}

static void fork_one(struct fuzz *f)
{
	pid_t pid = (pid_t)syscall(SYS_fork);

	if (!pid) {
		for (int i = 0; i < 4; i++)
			fuzz_command(f);
		if (fuzz_below(f, 2))
			execl("/proc/self/exe", "fuzz", "after-exec", (char *)NULL);
		_exit(0);
	}
	/* a child that waits for ever is not waited for: it ends with its group */
}

static void step(struct fuzz *f)
{
	switch (fuzz_below(f, 40)) {
	case 0:
	case 1:
		replace_fd(f);
		break;
	case 2:
		use_pool(f);
		break;
	case 3:
		use_file_system(f);
		break;
	case 4:
		poll_all();
		break;
	case 5:
	case 6:
		scribble(f);
		break;
	case 7:
		if (!fuzz_below(f, 8))
			fork_one(f);
		break;
	case 8:
	case 9:
	case 10:
	case 11:
		fuzz_connect(f);
		break;
	default:
		fuzz_command(f);
	}
}

/* ---- processes ---- */

static void *work(void *data)
{
	struct fuzz *f = data;

	for (unsigned int n = 1; fuzz_world->steps < fuzz_world->limit; n++) {
		step(f);
		__atomic_add_fetch(&fuzz_world->steps, 1, __ATOMIC_SEQ_CST);
		if (n % CLOSED_EVERY == 0)
			close_range(FDS_OURS, ~0U, 0);
	}
	return NULL;
}

static void one_process(unsigned int number, uint64_t seed)
{
	static struct fuzz f[THREADS];
	const struct rlimit limit = { FDS_MAX, FDS_MAX };
	pthread_t thread[THREADS];

	setrlimit(RLIMIT_NOFILE, &limit);
	signal(SIGCHLD, SIG_IGN);
	fuzz_open_files();
	for (int i = 0; i < FUZZ_FDS; i++)
		fuzz_fds[i] = open(bus_path, O_RDWR | O_CLOEXEC);
	for (unsigned int i = 0; i < THREADS; i++)
		fuzz_memory[i] = fuzz_memory_make();
	for (unsigned int i = 0; i < THREADS; i++) {
		f[i].chance = seed * THREADS + i;
		f[i].memory = fuzz_memory[i];
		f[i].id = number * THREADS + i;
		fuzz_connect(&f[i]);
		EQ(pthread_create(&thread[i], NULL, work, &f[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		EQ(pthread_join(thread[i], NULL), 0);
	/* with what it has forked */
	kill(0, SIGKILL);
}

static pid_t start_process(unsigned int number, uint64_t seed)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	setpgid(0, 0);
	one_process(number, seed);
	_exit(0);
}

/* It may have ended; what it has forked is in its group, too. */
static void end_process(pid_t pid)
{
	int status;

	/* before it has made the group */
	kill(pid, SIGKILL);
	kill(-pid, SIGKILL);
	EQ(waitpid(pid, &status, 0), pid);
	/* it has ended as it was told to: by nothing that it ran into */
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	kill(-pid, SIGKILL);
}

/* Until some commands later, or nothing goes on any more */
static void wait_for_steps(uint64_t n)
{
	uint64_t before = fuzz_world->steps, last;

	do {
		last = fuzz_world->steps;
		for (int ms = 0; ms < STUCK_MS && fuzz_world->steps == last; ms++)
			usleep(1000);
	} while (fuzz_world->steps != last && fuzz_world->steps - before < n &&
		 fuzz_world->steps < fuzz_world->limit);
}

static void still_works(void)
{
	struct peer a, b;

	hello(&a);
	hello(&b);
	EQ(acquire(&a, "still.works", 0, NULL), 0);
	EQ(send_name(&b, "still.works", 5), 0);
	EQ(recv_cookie(&a), 5);
}

static void random_commands(void)
{
	uint64_t chance, seed;
	pid_t pid[PROCESSES];
	static struct fuzz f;
	unsigned int which;

	alarm(SECONDS);
	CHECK(getrandom(&chance, sizeof(chance), 0) == sizeof(chance));
	seed = from_environment("KDBUS_FUZZ_SEED", chance & 0xffffffff);
	fuzz_world = mmap(NULL, sizeof(*fuzz_world), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(fuzz_world != MAP_FAILED);
	fuzz_world->limit = from_environment("KDBUS_FUZZ_STEPS", STEPS);
	printf("# KDBUS_FUZZ_SEED=%llu KDBUS_FUZZ_STEPS=%llu\n", (unsigned long long)seed,
	       (unsigned long long)fuzz_world->limit);
	f.chance = seed;
	for (unsigned int i = 0; i < PROCESSES; i++)
		pid[i] = start_process(i, seed++);
	while (fuzz_world->steps < fuzz_world->limit) {
		wait_for_steps(1 + fuzz_below(&f, 2 * LIFE));
		which = fuzz_below(&f, PROCESSES);
		end_process(pid[which]);
		pid[which] = start_process(which, seed++);
	}
	for (int i = 0; i < PROCESSES; i++)
		end_process(pid[i]);
	printf("# %llu commands of %llu succeeded; well-formed ones of each kind:",
	       (unsigned long long)fuzz_world->done, (unsigned long long)fuzz_world->commands);
	for (int i = 0; i < FUZZ_COMMANDS; i++)
		printf(" %llu", (unsigned long long)fuzz_world->good[i]);
	putchar('\n');
	/* fuzz that only meets the first check is none */
	for (int i = 0; i < FUZZ_COMMANDS; i++)
		CHECK(fuzz_world->good[i] || fuzz_world->limit < STEPS);
	still_works();
}

static const struct test tests[] = {
	{ "random commands (§16)", random_commands },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	/* what runs after exec */
	if (argc > 1)
		return 0;
	return run_tests(tests);
}
