// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rule 2 and the checks of a peer's memfd, bulk buffers, and the daemon's page. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lane/bulk.h"
#include "lane/memfd.h"
#include "lane/page.h"
#include "lane/wait.h"

static int memfd(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void rule_2_nobody_but_the_owner_can_write(void **state)
{
	char path[64];
	void *map, *other;
	int fd, again;

	assert_int_equal(lane_memfd_make("test", 100, &fd, &map), 0);
	strcpy(map, "the owner's mapping stays writable");
	assert_true(write(fd, "x", 1) < 0);
	assert_true(ftruncate(fd, 1) < 0);
	assert_true(ftruncate(fd, 1 << 20) < 0);
	assert_true(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_true(again >= 0);
	other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
	assert_ptr_equal(other, MAP_FAILED);
	other = mmap(NULL, 4096, PROT_READ, MAP_SHARED, again, 0);
	assert_ptr_not_equal(other, MAP_FAILED);
	assert_true(mprotect(other, 4096, PROT_READ | PROT_WRITE) < 0);
	munmap(other, 4096);
	close(again);
	close(fd);
	lane_memfd_unmap(map, lane_memfd_round(100));
	lane_memfd_unmap(NULL, 0);
	assert_int_equal(lane_memfd_make("test", 0, &fd, &map), -EINVAL);
}

#define SIZES (F_SEAL_SHRINK | F_SEAL_GROW)

static void a_peers_lane_is_checked_before_it_is_mapped(void **state)
{
	const void *map;
	size_t size;
	void *own;
	int fd;

	fd = memfd(8192, 0);
	assert_int_equal(lane_memfd_map_shared(fd, 1, 8192, &map, &size), -ETXTBSY);
	close(fd);
	fd = memfd(8192, SIZES | F_SEAL_FUTURE_WRITE);
	assert_int_equal(lane_memfd_map_shared(fd, 1, 8192, &map, &size), -ETXTBSY);
	close(fd);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(lane_memfd_map_shared(fd, 1, 8192, &map, &size), -EMEDIUMTYPE);
	close(fd);
	assert_int_equal(lane_memfd_map_shared(fd, 1, 8192, &map, &size), -EBADF);
	assert_int_equal(lane_memfd_make("test", 8192, &fd, &own), 0);
	assert_int_equal(lane_memfd_map_shared(fd, 8193, 10000, &map, &size), -EFAULT);
	assert_int_equal(lane_memfd_map_shared(fd, 1, 4096, &map, &size), -EFAULT);
	assert_int_equal(lane_memfd_map_shared(fd, 1, 5000, &map, &size), 0);
	assert_int_equal(size, 8192);
	((char *)own)[5] = 'x';
	assert_int_equal(((const char *)map)[5], 'x');
	lane_memfd_unmap(map, size);
	lane_memfd_unmap(own, 8192);
	close(fd);
}

/* Huge pages can be missing when they are touched: SIGBUS. Not every machine makes such a file. */
static void hugetlb_memory_is_refused(void **state)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	const void *map;
	size_t size;

	if (fd < 0)
		return;
	assert_int_equal(fcntl(fd, F_ADD_SEALS, SIZES | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL), 0);
	assert_int_equal(lane_memfd_map_shared(fd, 0, SIZE_MAX / 2, &map, &size), -EMEDIUMTYPE);
	close(fd);
}

/* §7.2 */
static void a_payload_memfd_is_checked_and_mapped_private(void **state)
{
	int all = SIZES | F_SEAL_WRITE | F_SEAL_SEAL, fd;
	const void *base, *data;
	size_t length;

	fd = memfd(10000, SIZES | F_SEAL_WRITE);
	assert_int_equal(lane_memfd_map_payload(fd, 0, 1, &base, &length, &data), -ETXTBSY);
	close(fd);
	/* Its owner may still write to it: not a payload that is read in place. */
	fd = memfd(10000, SIZES | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
	assert_int_equal(lane_memfd_map_payload(fd, 0, 1, &base, &length, &data), -ETXTBSY);
	close(fd);
	fd = memfd(10000, 0);
	assert_int_equal(pwrite(fd, "payload", 7, 5001), 7);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, all), 0);
	assert_int_equal(lane_memfd_map_payload(fd, 0, 0, &base, &length, &data), -EINVAL);
	assert_int_equal(lane_memfd_map_payload(fd, 0, 10001, &base, &length, &data), -EFAULT);
	assert_int_equal(lane_memfd_map_payload(fd, 10000, 1, &base, &length, &data), -EFAULT);
	assert_int_equal(lane_memfd_map_payload(fd, UINT64_MAX, 2, &base, &length, &data), -EFAULT);
	assert_int_equal(lane_memfd_map_payload(fd, 5001, 7, &base, &length, &data), 0);
	assert_memory_equal(data, "payload", 7);
	lane_memfd_unmap(base, length);
	close(fd);
}

static void a_forked_child_has_no_lanes(void **state)
{
	void *map;
	pid_t pid;
	int fd, status;

	assert_int_equal(lane_memfd_make("test", 4096, &fd, &map), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		unsigned char there;

		_exit(mincore(map, 4096, &there) < 0 && errno == ENOMEM ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
	lane_memfd_unmap(map, 4096);
}

/* Bulk buffers ---------------------------------------------------------------------------- */

struct pair {
	struct lane_channel a, b;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	int sv[2], fd;

	assert_non_null(p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	lane_channel_init(&p->a, &lane_linux_ops, sv[0], 0);
	lane_channel_init(&p->b, &lane_linux_ops, sv[1], 0);
	assert_int_equal(lane_channel_make(&p->a, LANE_RING_MIN, &fd), 0);
	assert_int_equal(lane_channel_attach(&p->b, fd), 0);
	close(fd);
	assert_int_equal(lane_channel_pass(&p->b, LANE_RING_MIN), 0);
	assert_int_equal(lane_drain(&p->a), 0);
	assert_non_null(p->a.peer);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	lane_channel_deinit(&p->a);
	lane_channel_deinit(&p->b);
	free(p);
	return 0;
}

static int send_bulk(struct pair *p, size_t size, char fill)
{
	struct lane_put put = { .type = LANE_REC_MSG };
	void *data, *body;
	int r;

	r = lane_bulk_get(&p->a, size, &put, &data);
	if (r < 0)
		return r;
	memset(data, fill, size);
	assert_int_equal(lane_put(&p->a, &put, &body), 0);
	lane_publish(&p->a, 1, 0);
	return 0;
}

static struct lane_env take_bulk(struct pair *p, size_t size, char fill)
{
	struct lane_env env;
	const void *data;
	uint32_t limit;

	assert_int_equal(lane_snapshot(&p->b, &limit), 0);
	assert_int_equal(lane_peek(&p->b, limit, &env), 0);
	assert_int_equal(lane_take(&p->b, NULL), 0);
	assert_int_equal(lane_consume(&p->b), 0);
	assert_int_equal(lane_bulk_data(&p->b, &env, &data), 0);
	assert_int_equal(env.bulk_size, size);
	assert_int_equal(((const char *)data)[0], fill);
	assert_int_equal(((const char *)data)[size - 1], fill);
	return env;
}

static void a_bulk_buffer_is_used_again(void **state)
{
	struct pair *p = *state;
	struct lane_env env;
	unsigned int i;
	void *map = NULL;

	for (i = 0; i < 20; i++) {
		assert_int_equal(send_bulk(p, 100000, (char)i), 0);
		env = take_bulk(p, 100000, (char)i);
		lane_bulk_return(&p->b, env.bulk, env.bulk_use);
		assert_true(!map || map == p->a.out[0].map);
		map = p->a.out[0].map;
	}
	assert_null(p->a.out[1].map);
}

static void bulk_buffers_come_back_in_any_order_and_run_out(void **state)
{
	struct pair *p = *state;
	struct lane_env env[LANE_BULK_MAX];
	unsigned int i;

	for (i = 0; i < LANE_BULK_MAX; i++) {
		assert_int_equal(send_bulk(p, 70000, (char)i), 0);
		env[i] = take_bulk(p, 70000, (char)i);
	}
	assert_int_equal(send_bulk(p, 70000, 'x'), -EAGAIN);
	lane_bulk_return(&p->b, env[5].bulk, env[5].bulk_use);
	assert_int_equal(send_bulk(p, 70000, 'y'), 0);
	env[5] = take_bulk(p, 70000, 'y');
	for (i = 0; i < LANE_BULK_MAX; i++)
		lane_bulk_return(&p->b, env[i].bulk, env[i].bulk_use);
	assert_int_equal(send_bulk(p, LANE_BULK_SIZE_MAX + 1, 'x'), -EMSGSIZE);
	assert_int_equal(send_bulk(p, 0, 'x'), -EMSGSIZE);
}

static void a_small_bulk_buffer_is_replaced_by_a_large_one(void **state)
{
	struct pair *p = *state;
	struct lane_env env;

	assert_int_equal(send_bulk(p, 1000, 'a'), 0);
	env = take_bulk(p, 1000, 'a');
	assert_int_equal(send_bulk(p, 1 << 20, 'b'), 0);
	lane_bulk_return(&p->b, env.bulk, env.bulk_use);
	env = take_bulk(p, 1 << 20, 'b');
	lane_bulk_return(&p->b, env.bulk, env.bulk_use);
	assert_int_equal(send_bulk(p, 3 << 20, 'c'), 0);
	env = take_bulk(p, 3 << 20, 'c');
	assert_int_equal(LANE_BULK_GEN(env.bulk), 1);
}

static void a_bulk_record_that_lies_breaks_the_channel(void **state)
{
	struct pair *p = *state;
	const void *data;
	struct lane_env env;

	assert_int_equal(send_bulk(p, 1000, 'a'), 0);
	env = take_bulk(p, 1000, 'a');
	/* Still held. */
	assert_int_equal(lane_bulk_data(&p->b, &env, &data), -EPROTO);
	p->b.broken = false;
	lane_bulk_return(&p->b, env.bulk, env.bulk_use);
	env.bulk_use++;
	env.bulk_size = LANE_BULK_MIN + 1;
	assert_int_equal(lane_bulk_data(&p->b, &env, &data), -EPROTO);
	p->b.broken = false;
	env.bulk_size = 1;
	env.bulk += 1;
	env.bulk_use = 1;
	assert_int_equal(lane_bulk_data(&p->b, &env, &data), -EPROTO);
}

/* The page -------------------------------------------------------------------------------- */

static void rule_13_generations_tell_what_changed(void **state)
{
	struct lane_page_owner owner;
	const struct lane_page *page;
	struct lane_page_gens gens, by_id;
	int fd;

	assert_int_equal(lane_page_make(&owner, 99, &fd), 0);
	assert_int_equal(lane_page_map(fd, &page), 0);
	close(fd);
	lane_page_gens(page, "org.example.A", &gens);
	lane_page_gens(page, NULL, &by_id);
	assert_true(lane_page_same(page, "org.example.A", &gens));
	lane_page_name_changed(&owner, "org.example.Other");
	assert_int_not_equal(lane_page_hash(99, "org.example.Other") % LANE_PAGE_NAMES,
			     lane_page_hash(99, "org.example.A") % LANE_PAGE_NAMES);
	assert_true(lane_page_same(page, "org.example.A", &gens));
	lane_page_name_changed(&owner, "org.example.A");
	assert_false(lane_page_same(page, "org.example.A", &gens));
	assert_true(lane_page_same(page, NULL, &by_id));
	lane_page_policy_changed(&owner);
	assert_false(lane_page_same(page, NULL, &by_id));
	assert_false(lane_page_monitored(page));
	lane_page_monitors_changed(&owner, true);
	assert_true(lane_page_monitored(page));
	lane_page_gens(page, NULL, &by_id);
	lane_page_monitors_changed(&owner, true);
	assert_true(lane_page_monitored(page));
	assert_false(lane_page_same(page, NULL, &by_id));
	lane_page_monitors_changed(&owner, false);
	assert_false(lane_page_monitored(page));
	assert_int_equal(lane_page_committed(page), 0);
	lane_page_commit(&owner, 1);
	assert_int_equal(lane_page_committed(page), 1);
	lane_page_unmap(page);
	lane_page_deinit(&owner);
	lane_page_deinit(NULL);
}

/* Spinning -------------------------------------------------------------------------------- */

static void with_one_cpu_nobody_spins(void **state)
{
	struct lane_spin spin;
	unsigned int i;

	lane_spin_init(&spin, LANE_SPIN_MAX_NS, 1);
	for (i = 0; i < 5000; i++) {
		assert_int_equal(lane_spin_begin(&spin), 0);
		lane_spin_end(&spin, true, 1);
	}
	lane_spin_init(&spin, 0, 8);
	assert_int_equal(lane_spin_begin(&spin), 0);
}

static void a_spin_that_earns_nothing_is_given_up(void **state)
{
	unsigned int i, spins = 0, waits = 20000;
	struct lane_spin spin;
	uint32_t budget;

	lane_spin_init(&spin, LANE_SPIN_MAX_NS, 2);
	for (i = 0; i < waits; i++) {
		budget = lane_spin_begin(&spin);
		if (!budget)
			continue;
		spins++;
		lane_spin_end(&spin, false, budget);
	}
	/* Probes only, ever rarer: not one wait in 500. */
	assert_in_range(spins, 5, waits / 500);
}

static void a_spin_that_pays_grows_back(void **state)
{
	struct lane_spin spin;
	unsigned int i;

	lane_spin_init(&spin, 40000, 2);
	for (i = 0; i < 8; i++)
		lane_spin_end(&spin, false, 1000);
	assert_int_equal(spin.budget_ns, 0);
	for (i = 0; !lane_spin_begin(&spin); i++)
		assert_true(i < LANE_SPIN_PROBE_RARELY);
	lane_spin_end(&spin, true, 3000);
	assert_int_equal(lane_spin_begin(&spin), 40000);
	/* Preempted while it spun: the CPU is wanted. */
	lane_spin_end(&spin, false, 4000000);
	assert_int_equal(lane_spin_begin(&spin), 0);
}

/* Yielding -------------------------------------------------------------------------------- */

static void a_yield_that_pays_goes_on(void **state)
{
	struct lane_spin spin;
	uint64_t now = 1;

	/* Also with one CPU, and with one in thousands that takes long. */
	lane_spin_init(&spin, LANE_SPIN_MAX_NS, 1);
	for (now = 1; now < 100000; now++) {
		assert_true(lane_yield_due(&spin, now));
		lane_yield_end(&spin, true, now, now % 5000 ? 3000 : LANE_YIELD_MAX_NS + 1);
	}
}

static void a_yield_that_earns_nothing_is_given_up(void **state)
{
	uint64_t now, yields = 0, waits = 1000000;
	struct lane_spin spin;

	/* A wait in each microsecond */
	lane_spin_init(&spin, LANE_SPIN_MAX_NS, 2);
	for (now = 1; now <= waits * 1000; now += 1000) {
		if (!lane_yield_due(&spin, now))
			continue;
		yields++;
		lane_yield_end(&spin, false, now, 600);
	}
	assert_in_range(yields, 1, 2 * waits / LANE_YIELD_REST);
}

static void a_third_process_has_the_cpu_once_in_long(void **state)
{
	uint64_t now = 1, lost = 0, slice = 3000000;
	struct lane_spin spin;

	lane_spin_init(&spin, LANE_SPIN_MAX_NS, 2);
	while (now < 100000 * slice) {
		if (lane_yield_due(&spin, now)) {
			now += slice;
			lost += slice;
			lane_yield_end(&spin, true, now, slice);
		}
		now += 5000;
	}
	assert_true(lost > slice);
	assert_true(lost < now / 100);
}

/* As when the machine was suspended */
static void a_stand_still_is_not_held_against_yielding_for_long(void **state)
{
	struct lane_spin spin;
	unsigned int i;

	lane_spin_init(&spin, LANE_SPIN_MAX_NS, 2);
	for (i = 0; i < 20; i++)
		lane_yield_end(&spin, true, 1, 3600000000000ULL);
	assert_true(lane_yield_due(&spin, 100000000000ULL));
}

static void who_does_not_spin_does_not_yield(void **state)
{
	struct lane_spin spin;

	lane_spin_init(&spin, 0, 2);
	assert_false(lane_yield_due(&spin, 1000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_2_nobody_but_the_owner_can_write),
		cmocka_unit_test(a_peers_lane_is_checked_before_it_is_mapped),
		cmocka_unit_test(hugetlb_memory_is_refused),
		cmocka_unit_test(a_payload_memfd_is_checked_and_mapped_private),
		cmocka_unit_test(a_forked_child_has_no_lanes),
		cmocka_unit_test_setup_teardown(a_bulk_buffer_is_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(bulk_buffers_come_back_in_any_order_and_run_out,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_small_bulk_buffer_is_replaced_by_a_large_one,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_bulk_record_that_lies_breaks_the_channel,
						setup, teardown),
		cmocka_unit_test(rule_13_generations_tell_what_changed),
		cmocka_unit_test(with_one_cpu_nobody_spins),
		cmocka_unit_test(a_spin_that_earns_nothing_is_given_up),
		cmocka_unit_test(a_spin_that_pays_grows_back),
		cmocka_unit_test(a_yield_that_pays_goes_on),
		cmocka_unit_test(a_yield_that_earns_nothing_is_given_up),
		cmocka_unit_test(a_third_process_has_the_cpu_once_in_long),
		cmocka_unit_test(a_stand_still_is_not_held_against_yielding_for_long),
		cmocka_unit_test(who_does_not_spin_does_not_yield),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
