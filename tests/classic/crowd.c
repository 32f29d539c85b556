// SPDX-License-Identifier: LGPL-2.1-or-later
/* A thousand clients, and a broadcast to all of them. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "peer.h"

#define MANY  1000
#define PATH  "/org/example/Crowd"
#define IFACE "org.example.Crowd"

static struct peer *crowd;

static int start(void **state)
{
	const struct rlimit limit = { 4 * MANY, 4 * MANY };

	setrlimit(RLIMIT_NOFILE, &limit);
	crowd = calloc(MANY, sizeof(*crowd));
	return !crowd;
}

static int stop(void **state)
{
	free(crowd);
	return 0;
}

static void test_broadcast(void **state)
{
	struct got g;
	int i;

	for (i = 0; i < MANY; i++) {
		peer_join(&crowd[i]);
		want_done(&crowd[i],
			  peer_driver(&crowd[i], "AddMatch", "s", "interface='" IFACE "'"));
	}
	peer_signal(&crowd[0], NULL, PATH, IFACE, "News", "s", "for all");
	for (i = 0; i < MANY; i++) {
		want_signal(&crowd[i], crowd[0].name, "News", &g);
		assert_string_equal(got_string(&g), "for all");
		got_free(&g);
	}
}

/* All of them go, and the bus knows. */
static void test_end(void **state)
{
	struct got g;
	int i;

	WITH(p);
	want_done(&p, peer_driver(&p, "AddMatch", "s", "member='NameOwnerChanged',arg2=''"));
	for (i = 0; i < MANY; i++)
		peer_close(&crowd[i]);
	for (i = 0; i < MANY; i++) {
		want_signal(&p, DBUS, "NameOwnerChanged", &g);
		got_free(&g);
	}
	peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broadcast),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
