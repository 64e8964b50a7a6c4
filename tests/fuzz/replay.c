/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replay.c - runs a fuzz target once on each file of the archives named on the command line: the committed corpus as a
 * test, with any compiler. An archive is a plain ustar file as tests/fuzz/pack writes it. Fails if an archive is cut
 * off, or holds no file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* POSIX.1-1988, "ustar": a header of 512 bytes before each file, whose contents are padded to a multiple of that.
 *
 *     0        100  124    136  148    156  157       512
 *     | name   | .. | size | .. | sum  | type | ...     |     size in octal digits; type '0': an ordinary file
 */
enum { BLOCK = 512, AT_SIZE = 124, SIZE_DIGITS = 12, AT_TYPE = 156, INPUT_MAX = 1 << 24 };

/* One input, in a buffer of exactly its size, so that a sanitizer sees a read past the end. */
static int replay_one(FILE *f, size_t size)
{
    uint8_t *data = malloc(size ? size : 1), padding[BLOCK];
    size_t rest = (BLOCK - size % BLOCK) % BLOCK;
    int ok = data && fread(data, 1, size, f) == size && fread(padding, 1, rest, f) == rest;
    if (ok)
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    return ok ? 0 : -1;
}

/* How many inputs there were, or -1. */
static int replay_archive(FILE *f)
{
    unsigned char header[BLOCK];
    int inputs = 0;
    for (;;) {
        if (fread(header, 1, BLOCK, f) != BLOCK)
            return -1;
        if (header[0] == 0) /* two blocks of zeros are the end */
            return inputs;
        char digits[SIZE_DIGITS + 1] = {0};
        for (int i = 0; i < SIZE_DIGITS; i++)
            digits[i] = (char)header[AT_SIZE + i];
        unsigned long size = strtoul(digits, NULL, 8);
        if (header[AT_TYPE] != '0' || size > INPUT_MAX || replay_one(f, size) != 0)
            return -1;
        inputs++;
    }
}

int main(int argc, char **argv)
{
    int inputs = 0;
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        int n = f ? replay_archive(f) : -1;
        if (f)
            fclose(f);
        if (n <= 0) {
            fprintf(stderr, "%s: %s\n", argv[i],
                    !f       ? "cannot be opened"
                    : n == 0 ? "holds no input"
                             : "not as tests/fuzz/pack writes it");
            return 1;
        }
        inputs += n;
    }
    printf("%d inputs replayed\n", inputs);
    return inputs ? 0 : 1;
}
