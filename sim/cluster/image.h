/* SPDX-License-Identifier: BSD-3-Clause
 *
 * image.h - a program as a shared object, read once and laid out as often as there are ranks. Relocated here and not by
 * the system's loader: so code is mapped from one file by all copies, each has its own data at an address that is the
 * same in every run, and a name that nobody stands in for is refused before anything runs.
 *
 * x86-64 only, C programs: no IFUNC, no thread-local storage of the initial-exec model, no text relocations. */
#ifndef RNL_CLUSTER_IMAGE_H
#define RNL_CLUSTER_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* What a name outside the program stands for. */
struct rnl_binding {
    enum rnl_binding_kind { RNL_BIND_REFUSED = 0, RNL_BIND_ADDRESS, RNL_BIND_ARENA } kind;
    uint64_t value; /* ADDRESS: a function of this process; ARENA: an offset in each copy's arena */
};
typedef struct rnl_binding rnl_image_bind(const char *name);

enum { RNL_IMAGE_LOADS = 16 };
struct rnl_image_load {
    uint64_t at, file_at, file_bytes, bytes;
    uint8_t write, execute;
};
struct rnl_image_fix {
    uint64_t at, value;
    enum rnl_image_base { RNL_FIX_IMAGE, RNL_FIX_ARENA, RNL_FIX_VALUE } base; /* is added to the value */
};
struct rnl_image {
    char *path;
    int fd;
    const unsigned char *file;
    size_t file_bytes;
    size_t bytes; /* of address space, in whole pages */
    struct rnl_image_load load[RNL_IMAGE_LOADS];
    unsigned loads;
    struct rnl_image_fix *fix;
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
int rnl_image_open(const char *path, rnl_image_bind *bind, struct rnl_image **out);
void rnl_image_close(struct rnl_image *);
/* Maps what is only read, at `base`. 0, RNL_ERR_SYSTEM. */
int rnl_image_map(const struct rnl_image *, unsigned char *base);
/* Fills in what is written, which is zero now: a new life. */
void rnl_image_fill(const struct rnl_image *, unsigned char *base, unsigned char *arena);
/* The function that offset `at` of the image is in, and how far in; NULL = unknown. */
const char *rnl_image_name(const struct rnl_image *, uint64_t at, uint64_t *in);

#endif
