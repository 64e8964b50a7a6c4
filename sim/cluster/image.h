/* SPDX-License-Identifier: BSD-3-Clause
 *
 * image.h - a program as a shared object, read once and laid out as often as there are ranks. Relocated here and not by
 * the system's loader: so code is mapped from one file by all virtual processes, each has its own data at an address
 * that is the same in every run, and a name that nobody stands in for is refused before anything runs.
 *
 * x86-64 only, C programs: no IFUNC, no thread-local storage of the initial-exec model, no text relocations. */
#ifndef VC_IMAGE_H
#define VC_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* What a name outside the program stands for. */
struct vc_binding {
    enum vc_binding_kind { VC_BIND_REFUSED = 0, VC_BIND_ADDRESS, VC_BIND_ARENA } kind;
    uint64_t value; /* ADDRESS: a function of this process; ARENA: an offset in each virtual process's arena */
};
typedef struct vc_binding vc_image_bind(const char *name);

enum { VC_IMAGE_LOADS = 16 };
struct vc_image_load {
    uint64_t at, file_at, file_bytes, bytes;
    uint8_t write, execute;
};
struct vc_image_fix {
    uint64_t at, value;
    enum vc_image_base { VC_FIX_IMAGE, VC_FIX_ARENA, VC_FIX_VALUE } base; /* is added to the value */
};
struct vc_image {
    char *path;
    int fd;
    const unsigned char *file;
    size_t file_bytes;
    size_t bytes; /* of address space, in whole pages */
    struct vc_image_load load[VC_IMAGE_LOADS];
    unsigned loads;
    struct vc_image_fix *fix;
    size_t fixes;
    uint64_t init, fini; /* tables of functions */
    size_t inits, finis;
    uint64_t main;
    uint64_t tls_file_at, tls_file_bytes, tls_bytes, tls_align;
    uint64_t eh_frame; /* 0 = none */
    const void *symbols;
    const char *names;
    size_t symbols_n, names_bytes;
};

/* 0; RNL_ERR_UNSUPPORTED: it is no program that can be run here, the sentence says why, naming what is refused;
 * RNL_ERR_SYSTEM, RNL_ERR_NO_MEMORY. */
int vc_image_open(const char *path, vc_image_bind *bind, struct vc_image **out);
void vc_image_close(struct vc_image *);
/* Maps what is only read, at `base`. 0, RNL_ERR_SYSTEM. */
int vc_image_map(const struct vc_image *, unsigned char *base);
/* Fills in what is written, which is zero now: a new life. */
void vc_image_fill(const struct vc_image *, unsigned char *base, unsigned char *arena);
/* The function that offset `at` of the image is in, and how far in; NULL = unknown. */
const char *vc_image_name(const struct vc_image *, uint64_t at, uint64_t *in);

#endif
