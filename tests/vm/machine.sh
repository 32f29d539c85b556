# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Read by run and cost, which set top, the project's directory, and work, one for files
# of the run: finding a kernel, building the module for it, booting both in QEMU.

# machine_missing: print a program that is needed and not installed.
machine_missing() {
	for program in qemu-system-x86_64 cpio xz zstd; do
		command -v $program >/dev/null || echo "$program"
	done | head -n 1
}

# machine_find KERNEL: set kernel, an image, headers, a directory that modules can be built
# for, and release. KERNEL is a series, or a directory that a kernel was built in.
machine_find() {
	kernel=$1/arch/x86/boot/bzImage
	headers=$1
	if [ ! -d "$1" ]; then
		for kernel in $(printf '%s\n' /boot/vmlinuz-"$1".* | sort -rV); do
			headers=/usr/src/linux-headers-${kernel#/boot/vmlinuz-}
			[ ! -e "$headers/Module.symvers" ] || break
		done
	fi
	[ -e "$kernel" ] && [ -e "$headers/Module.symvers" ] || return 1
	release=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' \
		"$headers/include/generated/utsrelease.h")
}

# machine_module [FILE]: build the module, whose log is in $work/build, or take FILE.
machine_module() {
	if [ -n "${1-}" ]; then
		module=$(dirname "$1")
		: >"$work/build"
		return
	fi
	module=$top/build/module/$release
	"$top/module/build" --out "$module" "$headers" >"$work/build" 2>&1
}

# QEMU starts an uncompressed kernel three times as fast. It lies in the image as one
# stream, xz or zstd, behind the code that unpacks it. What is packed otherwise is
# started as it is.
unpack() {
	offset=$(LC_ALL=C grep -obUaP "$1" "$kernel" | head -n 1 | cut -d: -f1)
	[ -n "$offset" ] || return 1
	shift
	tail -c +$((offset + 1)) "$kernel" | "$@" 2>/dev/null >"$work/vmlinux" || true
	[ "$(head -c 4 "$work/vmlinux" | tail -c 3)" = ELF ]
}

# The dynamic linker has a path of its own; it looks for all else in /lib.
pack_libraries() {
	mkdir -p "$root/lib"
	for program; do
		ldd "$program" 2>/dev/null |
			awk '$2 == "=>" { print $3, "/lib/" } $1 ~ /^\// { print $1, $1 }'
	done | sort -u | while read -r library place; do
		mkdir -p "$root$(dirname "$place")"
		cp "$library" "$root$place"
	done
}

# machine_pack INIT PROGRAM...: make the kernel and the initial file system. The programs
# are to be run; those in bin, one a line, are for them to start.
machine_pack() {
	root=$work/root
	image=$kernel
	if unpack '\xfd7zXZ\x00' xz -dc --single-stream ||
		unpack '\x28\xb5\x2f\xfd' zstd -dcq; then
		image=$work/vmlinux
	fi
	mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/mnt" "$root/tests"
	cp "$1" "$root/init"
	shift
	cp "$@" "$root/tests/"
	pack_libraries "$@"
	printf '%s' "${bin-}" | while read -r program; do
		cp "$program" "$root/bin/"
		pack_libraries "$program"
	done
	strip -g -o "$root/kdbus.ko" "$module/kdbus.ko"
	(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc -R 0:0 --quiet) >"$work/initrd"
}

# machine_boot SECONDS KERNEL-ARGUMENTS [QEMU-ARGUMENT...]: run the machine, killed after
# that time, with what it says in $work/text. Returns as QEMU does: "outb(value)" to its
# exit device makes that 2 * value + 1.
machine_boot() {
	seconds=$1
	arguments=$2
	shift 2
	status=0
	timeout --foreground -k 2 "$seconds" qemu-system-x86_64 -nodefaults -display none \
		-no-reboot -M pc,usb=off,vmport=off -cpu max,-erms,-fsrm -m 1024 \
		-kernel "$image" -initrd "$work/initrd" -serial stdio \
		-device isa-debug-exit,iobase=0xf4,iosize=4 "$@" \
		-append "console=ttyS0 quiet panic=-1 oops=panic mitigations=off cryptomgr.notests=1 \
			no_timer_check $arguments" \
		</dev/null >"$work/log" || status=$?
	tr -d '\r' <"$work/log" >"$work/text"
	return $status
}
