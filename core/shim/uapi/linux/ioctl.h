/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_SHIM_UAPI_LINUX_IOCTL_H
#define CORE_SHIM_UAPI_LINUX_IOCTL_H

/* The common encoding of ioctl numbers (spec 3.7), for -nostdinc builds. */

#define _IOC(dir, type, nr, size) (((dir) << 30) | ((size) << 16) | ((type) << 8) | (nr))
#define _IOW(type, nr, size) _IOC(1U, type, nr, sizeof(size))
#define _IOR(type, nr, size) _IOC(2U, type, nr, sizeof(size))
#define _IOWR(type, nr, size) _IOC(3U, type, nr, sizeof(size))

#endif
