/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replay.c - runs a fuzz target once on each file of the directories named on the command line: the committed corpus as
 * a test, with any compiler. Fails if there is none. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, const struct stat *st)
{
    FILE *f = fopen(path, "rb");
    size_t size = (size_t)st->st_size;
    uint8_t *data = malloc(size ? size : 1); /* exact, so that a read past the end is seen */
    int ok = f && data && fread(data, 1, size, f) == size;
    if (ok)
        LLVMFuzzerTestOneInput(data, size);
    else
        perror(path);
    free(data);
    if (f)
        fclose(f);
    return ok ? 0 : -1;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (!dir) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *e; (e = readdir(dir));) {
            char path[4096];
            struct stat st;
            snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
            if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
                continue;
            if (replay_file(path, &st) != 0)
                return 1;
            files++;
        }
        closedir(dir);
    }
    printf("%d inputs replayed\n", files);
    return files ? 0 : 1;
}
