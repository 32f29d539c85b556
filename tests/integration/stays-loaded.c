// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program that has unloaded the library still has its code: a thread of it may be in close() of
 * somebody's file, and comes back there.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *lib = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (dlclose(lib) != 0 || !dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) {
		fprintf(stderr, "the library is not there any more\n");
		return 1;
	}
	return 0;
}
