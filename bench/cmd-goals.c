// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kdbus-bench goals: what kdbus is to be as fast as, side by side.
 *
 * The goals hold for different regimes: both ends on one CPU, on two, and on two that others keep
 * busy. Each is a scene of its own with its subjects; within one all take turns.
 */
#include <sched.h>
#include <stdio.h>

#include "commands.h"
#include "goals.h"
#include "peers.h"
#include "set.h"

#define MIB (1U << 20)

enum {
	KDBUS,
	RELAYED,
	ASLEEP,
	FUTEX,
	PIPE,
	PRIMITIVE,
	SOCKET,
	MEMCPY,
	BROKER,
	N_SUBJECTS
};

static const struct subject subjects[N_SUBJECTS] = {
	[KDBUS] = { .name = "libkdbus", .bus = BUS_KDBUS, .transport = &transport_user },
	[RELAYED] = { .name = "relayed", .bus = BUS_KDBUS, .transport = &transport_user_relayed },
	[ASLEEP] = { .name = "no spin", .bus = BUS_KDBUS, .transport = &transport_user_asleep },
	[FUTEX] = { .name = "futex", .transport = &transport_futex },
	[PIPE] = { .name = "pipe", .transport = &transport_pipe },
	[PRIMITIVE] = { .name = "unix socket", .transport = &transport_unix },
	[SOCKET] = { .name = "socket", .transport = &transport_stream },
	[MEMCPY] = { .name = "memcpy", .transport = &transport_copy },
	[BROKER] = { .name = "dbus-broker",
		     .bus = BUS_DBUS_BROKER,
		     .transport = TRANSPORT_SDBUS,
		     .package = PACKAGE_SDBUS },
};

/**
 * struct measure - a row, and whom it is measured of
 * @kind, @nth: as of its order
 * @who: @n_who subjects
 */
struct measure {
	const char *row;
	struct job job;
	enum order_kind kind;
	unsigned int nth;
	unsigned int n_who;
	unsigned int who[3];
};

struct scene {
	const char *name;
	unsigned int cpus; /* that client and server are pinned to */
	unsigned int busy; /* other processes on them */
	const struct measure *measures;
	unsigned int n_measures;
};

#define CALL_4K                              \
	{                                    \
		.request = 4096, .reply = 64 \
	}
#define CALL_64                            \
	{                                  \
		.request = 64, .reply = 64 \
	}
#define CARRY(k, size)                                                      \
	{                                                                   \
		.kind = (k), .request = (size), .reply = 64, .unread = true \
	}
#define RELAY(size)                            \
	{                                      \
		.request = (size), .reply = 64 \
	}
#define POLLED                                                    \
	{                                                         \
		.request = 4096, .reply = 64, .poll_server = true \
	}

static const struct measure one_cpu[] = {
	{ "asleep", CALL_4K, .n_who = 2, .who = { KDBUS, FUTEX } },
	{ "in poll", POLLED, .n_who = 3, .who = { KDBUS, FUTEX, PRIMITIVE } },
	{ "one way, one CPU", CALL_4K, ORDER_FLOW, .n_who = 2, .who = { KDBUS, SOCKET } },
	{ "vector 1M", CARRY(JOB_COPY, MIB), .n_who = 2, .who = { KDBUS, MEMCPY } },
	{ "memfd 64", CARRY(JOB_PASS, 64), .n_who = 2, .who = { KDBUS, SOCKET } },
	{ "memfd 1M", CARRY(JOB_PASS, MIB), .n_who = 2, .who = { KDBUS, SOCKET } },
	{ "relayed 4k", RELAY(4096), .n_who = 2, .who = { RELAYED, BROKER } },
	{ "relayed 64k", RELAY(65536), .n_who = 2, .who = { RELAYED, BROKER } },
	{ "relayed 1M", RELAY(MIB), .n_who = 2, .who = { RELAYED, BROKER } },
	{ "relayed 64", CALL_64, .n_who = 1, .who = { RELAYED } },
	{ "call 1", CALL_64, ORDER_FRESH, 1, 1, { KDBUS } },
	{ "call 2", CALL_64, ORDER_FRESH, 2, 1, { KDBUS } },
	{ "call 3", CALL_64, ORDER_FRESH, 3, 1, { KDBUS } },
	{ "call 4", CALL_64, ORDER_FRESH, 4, 1, { KDBUS } },
	{ "connect", CALL_64, ORDER_FRESH, 0, 2, { KDBUS, BROKER } },
};

static const struct measure two_cpus[] = {
	{ "spinning", CALL_4K, .n_who = 2, .who = { KDBUS, PIPE } },
	{ "one way, two CPUs", CALL_4K, ORDER_FLOW, .n_who = 2, .who = { KDBUS, SOCKET } },
};

static const struct measure busy_cpus[] = {
	{ "busy", CALL_4K, .n_who = 2, .who = { KDBUS, ASLEEP } },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
static const struct scene scenes[] = {
	{ "one CPU", 1, 0, one_cpu, COUNT(one_cpu) },
	{ "two CPUs", 2, 0, two_cpus, COUNT(two_cpus) },
	{ "two busy CPUs", 2, 2, busy_cpus, COUNT(busy_cpus) },
};

#define OURS(row)               \
	{                       \
		row, "libkdbus" \
	}
#define PASSED_ON(row)         \
	{                      \
		row, "relayed" \
	}

static const struct goal goals[] = {
	{ "call 4 KiB, both asleep", OURS("asleep"), { NULL, "futex" }, "futex", 1.2 },
	{ "call 4 KiB, server in poll",
	  OURS("in poll"),
	  { NULL, "futex", "unix socket" },
	  "mean of futex and socket",
	  1.2 },
	{ "call 4 KiB, both spinning", OURS("spinning"), { NULL, "pipe" }, "pipe", 1 / 30.0 },
	{ "call 4 KiB, both CPUs busy",
	  OURS("busy"),
	  { NULL, "no spin" },
	  "without spinning",
	  1.1 },
	{ "one way 4 KiB, one CPU",
	  OURS("one way, one CPU"),
	  { NULL, "socket" },
	  "stream socket",
	  1 / 5.0 },
	{ "one way 4 KiB, two CPUs",
	  OURS("one way, two CPUs"),
	  { NULL, "socket" },
	  "stream socket",
	  1 / 5.0 },
	{ "call 1 MiB as vector, unread", OURS("vector 1M"), { NULL, "memcpy" }, "memcpy", 2 },
	{ "sealed memfd 1 MiB, mapped",
	  OURS("memfd 1M"),
	  { "memfd 64", "libkdbus" },
	  "one of 64 B",
	  1.1 },
	{ "the same over a bare socket",
	  { "memfd 1M", "socket" },
	  { "memfd 64", "socket" },
	  "one of 64 B",
	  0 },
	{ "relayed call 4 KiB",
	  PASSED_ON("relayed 4k"),
	  { NULL, "dbus-broker" },
	  "dbus-broker",
	  1.2 },
	{ "relayed call 64 KiB",
	  PASSED_ON("relayed 64k"),
	  { NULL, "dbus-broker" },
	  "dbus-broker",
	  1 },
	{ "relayed call 1 MiB",
	  PASSED_ON("relayed 1M"),
	  { NULL, "dbus-broker" },
	  "dbus-broker",
	  1 },
	{ "first call",
	  OURS("call 1"),
	  { "relayed 64", "relayed", NULL, 60000 },
	  "relayed + 60 us",
	  1 },
	{ "second call",
	  OURS("call 2"),
	  { "relayed 64", "relayed", NULL, 60000 },
	  "relayed + 60 us",
	  1 },
	{ "third call",
	  OURS("call 3"),
	  { "relayed 64", "relayed", NULL, 60000 },
	  "relayed + 60 us",
	  1 },
	{ "fourth call",
	  OURS("call 4"),
	  { "relayed 64", "relayed", NULL, 60000 },
	  "relayed + 60 us",
	  1 },
	{ "connecting", OURS("connect"), { NULL, "dbus-broker" }, "sd-bus on dbus-broker", 0 },
};

/* ---- measuring ---- */

static struct row make_row(const struct measure *m, const struct options *o)
{
	struct row row = { .order = { .job = m->job, .kind = m->kind, .nth = m->nth } };

	snprintf(row.name, sizeof(row.name), "%s", m->row);
	if (m->kind == ORDER_FRESH) {
		row.order.count = o->count ? o->count : o->quick ? 30 : 200;
	} else if (m->kind == ORDER_FLOW) {
		row.order.count = o->count ? o->count : o->quick ? 2000 : 20000;
		row.order.window = 32;
	} else {
		row.order.count = o->count;
		row.order.ns = o->quick ? 30000000 : 150000000;
		row.order.warm_ns = o->quick ? 3000000 : 15000000;
	}
	return row;
}

static int measure_scene(struct set *set, const struct scene *scene, const struct options *o,
			 struct report *report)
{
	struct column columns[N_SUBJECTS];
	unsigned int rep, i, j;
	struct row row;
	int r = 0;

	for (rep = 0; rep < o->repeat && r == 0; rep++)
		for (i = 0; i < scene->n_measures && r == 0; i++) {
			for (j = 0; j < scene->measures[i].n_who; j++)
				columns[j] =
					(struct column){ .subject = scene->measures[i].who[j] };
			row = make_row(&scene->measures[i], o);
			set_progress(scene->name, row.name, rep + 1, o->repeat);
			r = set_measure_row(set, columns, j, &row, report);
		}
	set_progress(NULL, NULL, 0, 0);
	return r;
}

/* The last CPUs: interrupts are often the first one's. */
static void pin(struct options *o, const cpu_set_t *usable, unsigned int n)
{
	int cpu;

	o->n_cpus = 0;
	for (cpu = CPU_SETSIZE - 1; cpu >= 0 && o->n_cpus < n; cpu--)
		if (CPU_ISSET(cpu, usable))
			o->cpus[o->n_cpus++] = cpu;
}

static bool takes_part(const struct scene *scene, unsigned int subject)
{
	unsigned int i, j;

	for (i = 0; i < scene->n_measures; i++)
		for (j = 0; j < scene->measures[i].n_who; j++)
			if (scene->measures[i].who[j] == subject)
				return true;
	return false;
}

static int play(const struct scene *scene, const cpu_set_t *usable, const struct options *options,
		struct report *report)
{
	struct subject here[N_SUBJECTS];
	struct options o = *options;
	struct set set;
	unsigned int i;
	int r;

	if ((unsigned int)CPU_COUNT(usable) < scene->cpus) {
		printf("# %s: there is one CPU only\n", scene->name);
		return 0;
	}
	pin(&o, usable, scene->cpus);
	o.busy += scene->busy;
	for (i = 0; i < N_SUBJECTS; i++) {
		here[i] = subjects[i];
		if (!takes_part(scene, i))
			here[i].missing = "no part of this scene";
	}
	printf("# %s: client on %d, server on %d, %u competing processes\n", scene->name, o.cpus[0],
	       o.cpus[o.n_cpus - 1], o.busy);
	r = set_start(&set, here, N_SUBJECTS, &o, report);
	if (r < 0)
		return r;
	r = measure_scene(&set, scene, &o, report);
	set_stop(&set);
	return r;
}

static void write_goals(const struct report *r, struct json *j)
{
	goals_json(r, goals, COUNT(goals), j);
}

int command_goals(const struct options *options)
{
	struct options o = *options;
	struct report report;
	cpu_set_t usable;
	unsigned int i;
	int r = set_check_only(subjects, N_SUBJECTS, options);

	if (r < 0)
		return r;
	CPU_ZERO(&usable);
	sched_getaffinity(0, sizeof(usable), &usable);
	o.placed = true;
	report_init(&report, "goals", &o);
	report.more = write_goals;
	for (i = 0; i < COUNT(scenes) && r == 0; i++)
		r = play(&scenes[i], &usable, &o, &report);
	if (r == 0) {
		goals_print(&report, goals, COUNT(goals));
		report_details(&report, stdout);
		report_missing(&report, stdout);
		r = report_files(&report);
	}
	report_clear(&report);
	return r;
}
