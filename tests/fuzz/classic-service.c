// SPDX-License-Identifier: LGPL-2.1-or-later
/* .service files and their command lines. Input: a file, or a command line after a zero byte. */
#include <errno.h>

#include "daemon/classic/service-file.h"
#include "dbus/name.h"
#include "fuzz.h"

/* Arguments are no longer than the line, and none is split again once it is quoted. */
static void check_exec(const char *exec)
{
	const char *reason = NULL;
	char **argv = NULL;
	size_t n = 0, i;
	int r = service_exec_split(exec, &argv, &reason);

	FUZZ_CHECK(r == 0 || r == -EINVAL);
	FUZZ_CHECK(!argv == (r != 0) && !reason == (r == 0));
	for (i = 0; argv && argv[i]; i++)
		n += strlen(argv[i]) + 1;
	FUZZ_CHECK(n <= strlen(exec) + 1);
	FUZZ_CHECK(r || i);
	service_argv_free(argv);
}

static void check_line(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);

	FUZZ_CHECK(line);
	memcpy(line, data, size);
	line[size] = '\0';
	check_exec(line);
	free(line);
}

static void check_file(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct service_file file;
	const char *reason = NULL;
	unsigned int line = 0;
	int r = service_file_parse(text, size, &file, &line, &reason);

	free(text);
	FUZZ_CHECK(r == 0 || r == -EINVAL);
	FUZZ_CHECK(!reason == (r == 0) && line <= size + 1);
	if (r < 0)
		return;
	FUZZ_CHECK(dbusp_name_is_wellknown(file.name, strlen(file.name)));
	FUZZ_CHECK(file.exec && !file.file);
	check_exec(file.exec);
	service_file_deinit(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && !*data)
		check_line(data + 1, size - 1);
	else
		check_file(data, size);
	return 0;
}
