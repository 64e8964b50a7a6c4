/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_libc.c - says what the C library does for it: options, streams, files, text, sorting, memory. Run as a process
 * and on the virtual cluster, with the same arguments in the same directory, it says the same. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int flag;

static void options(int argc, char **argv)
{
    static const struct option known[] = {
        {"alpha", no_argument, NULL, 'a'},       {"beta", required_argument, NULL, 'b'},
        {"gamma", optional_argument, NULL, 'g'}, {"flag", no_argument, &flag, 7},
        {"flat", no_argument, NULL, 'f'},        {NULL, 0, NULL, 0}};
    int c, at = -1;
    while ((c = getopt_long(argc, argv, "ab:g::f", known, &at)) != -1)
        printf("option %d arg %s next %d letter %d at %d flag %d\n", c, optarg ? optarg : "none", optind,
               c == '?' ? optopt : 0, c == 0 ? at : -1, flag);
    for (int i = optind; i < argc; i++)
        printf("argument %s\n", argv[i]);
}

static int by_tens(const void *a, const void *b)
{
    return *(const int *)a / 10 - *(const int *)b / 10;
}

static void sorting(void)
{
    int n[101];
    for (int i = 0; i < 101; i++)
        n[i] = i * 37 % 101;
    qsort(n, 101, sizeof n[0], by_tens); /* those of one ten stay in order */
    for (int i = 0; i < 101; i++)
        printf("%d%c", n[i], i % 20 == 19 || i == 100 ? '\n' : ' ');
    int key = 55, *found = bsearch(&key, n, 101, sizeof n[0], by_tens);
    printf("found %d\n", found ? *found / 10 : -1);
}

static void streams(void)
{
    char line[40], *got = NULL;
    size_t room = 0;
    FILE *f = fopen("libc.txt", "w+");
    if (!f) {
        printf("no file: %s\n", strerror(errno));
        return;
    }
    for (int i = 0; i < 2000; i++)
        fprintf(f, "line %d of %s\n", i, i % 2 ? "many" : "plenty");
    fputs("a longer line that does not fit into what is there for it, and no end", f);
    printf("at %ld\n", ftell(f));
    rewind(f);
    printf("first %s", fgets(line, sizeof line, f));
    int c = getc(f);
    ungetc(c, f);
    printf("then %c, at %ld\n", c, ftell(f));
    fseek(f, -30, SEEK_END);
    printf("read %zu\n", fread(line, 1, 20, f));
    while ((c = getc(f)) != EOF)
        putchar(c);
    printf(". end %d error %d\n", feof(f) != 0, ferror(f) != 0);
    rewind(f);
    int lines = 0;
    size_t bytes = 0;
    for (ssize_t n; (n = getline(&got, &room, f)) > 0; lines++)
        bytes += (size_t)n;
    printf("%d lines, %zu bytes\n", lines, bytes);
    free(got);
    struct stat st;
    int told = fstat(fileno(f), &st);
    printf("stat %d, %ld bytes\n", told, (long)st.st_size);
    printf("close %d\n", fclose(f));
    f = fopen("libc.txt", "a");
    fputc('!', f);
    fclose(f);
    int fd = open("libc.txt", O_RDONLY);
    printf("now %ld bytes\n", (long)lseek(fd, 0, SEEK_END));
    printf("pread %zd\n", pread(fd, line, 5, 5));
    ssize_t written = write(fd, line, 5);
    printf("write %zd: %s\n", written, strerror(errno));
    printf("close %d\n", close(fd));
    printf("again %d\n", close(fd));
    printf("rename %d\n", rename("libc.txt", "libc.old"));
    int removed = remove("libc.txt");
    printf("remove %d: %s\n", removed, strerror(errno));
    printf("remove %d\n", remove("libc.old"));
    int none = open("not/there", O_RDONLY);
    printf("no file %d: %s\n", none, strerror(errno));
    printf("no mode %d\n", fopen("x", "q") == NULL);
}

static void memory(void)
{
    char *p = malloc(10), *q = calloc(100, 7);
    memset(p, 'x', 10);
    for (size_t n = 10; n < 100000; n = n * 3 / 2) {
        p = realloc(p, n);
        p[n - 1] = 'y';
    }
    int zeros = 0;
    for (int i = 0; i < 700; i++)
        zeros += q[i] == 0;
    void *aligned = aligned_alloc(4096, 8192), *other = NULL;
    printf("%c%c %d zeros, aligned %d, %d\n", p[0], p[9], zeros, (int)((size_t)aligned % 4096),
           posix_memalign(&other, 64, 100) == 0 && (size_t)other % 64 == 0);
    free(other);
    free(aligned);
    free(q);
    free(p);
    char *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped[(1 << 20) - 1] = 1;
    printf("mapped %d, ", mapped[0]);
    printf("unmapped %d\n", munmap(mapped, 1 << 20));
    void *volatile much = malloc((size_t)1 << 46);
    printf("too much %d: %s\n", !much, strerror(errno));
}

static void text(void)
{
    char buf[64], *rest = NULL, *word, copy[] = "one,two;three";
    long number = strtol("  -42rest", &rest, 10);
    printf("%ld %s\n", number, rest);
    printf("%g %d %d\n", strtod("1e-3", NULL), atoi("17x"), isalpha('q') != 0);
    for (char *at = copy; (word = strtok_r(at, ",;", &rest)) != NULL; at = NULL)
        printf("[%s]", word);
    printf(" %d", snprintf(buf, sizeof buf, "%5.2f|%-4s|%04x", 3.14159, "ab", 255u));
    printf(" %d\n", sscanf("12 x", "%d", &flag));
    printf("%s %s\n", buf, strstr("haystack", "st"));
    char *made = NULL;
    int letters = asprintf(&made, "%d-%s", 5, "made");
    printf("%d %s\n", letters, letters > 0 ? made : "nothing");
    free(made);
    errno = ERANGE;
    perror("a mistake");
    printf("%p of nothing\n", (void *)NULL);
}

static void last(void)
{
    puts("at the end, second");
}

static void before_last(void)
{
    puts("at the end, first");
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(last);
    atexit(before_last);
    options(argc, argv);
    sorting();
    streams();
    memory();
    text();
    for (int c; (c = getchar()) != EOF;)
        putchar(toupper(c));
    return 5;
}
