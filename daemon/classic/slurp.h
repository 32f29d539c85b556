/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_SLURP_H
#define CLASSIC_SLURP_H

/* slurp.h - a small file as a whole, also one without a size such as a pipe */

#include <stddef.h>

/**
 * slurp_fd() - read to the end
 * @fd: where to read
 * @max: bytes that it may have
 * @ret_text: what was read, for the caller to free
 * @ret_len: its length
 *
 * Return: 0; -EFBIG if there is more; -ENOMEM; what read() fails with.
 */
int slurp_fd(int fd, size_t max, char **ret_text, size_t *ret_len);

#endif
