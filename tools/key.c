/* SPDX-License-Identifier: BSD-3-Clause
 *
 * key.c - `runnel key`: makes and installs the key by which the daemons of several hosts know each other, and shows
 * what may be shown of it (meet/node_key.h). */
#include "meet/node_key.h"
#include "runnel/runnel.h"
#include "tool.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_USAGE = 64, EXIT_NO_INPUT = 66, EXIT_OSERR = 71, TEXT = 256 };

struct key_arguments {
    const char *file;
    int makes, installs, prints;
};

static const struct argp_option options[] = {
    {"new", 'n', NULL, 0, "make a key", 0},
    {"install", 'i', NULL, 0, "read a key from standard input, and write it to the file", 0},
    {"print", 'p', NULL, 0, "print the key itself, which is a secret, for --install on another host", 0},
    {"file", 'f', "FILE", 0, "instead of /etc/runnel/key (root) or ~/.config/runnel/key", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct key_arguments *a = state->input;
    switch (key) {
    case 'n':
        a->makes = 1;
        return 0;
    case 'i':
        a->installs = 1;
        return 0;
    case 'p':
        a->prints = 1;
        return 0;
    case 'f':
        a->file = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "it takes no argument '%s'", arg);
        return 0;
    case ARGP_KEY_END:
        if (a->makes + a->installs + a->prints > 1)
            argp_error(state, "--new, --install and --print exclude each other");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Makes, installs and shows the key by which the daemons of several hosts know each other (runnel-daemon(1)). "
        "Without an option it shows the key's fingerprint and the port at which daemons listen.\v"
        "One key for all hosts: runnel key --new; runnel key --print | ssh HOST runnel key --install",
    .children = rnl_tool_help};

static int failed(int status)
{
    fprintf(stderr, "runnel key: %s\n", rnl_last_error()->text);
    return status == RNL_ERR_UNREACHABLE ? EXIT_NO_INPUT : EXIT_OSERR;
}

static int read_input(unsigned char key[RNL_NODE_KEY_BYTES])
{
    char text[TEXT];
    size_t n = 0;
    ssize_t got;
    while (n < sizeof text - 1 && (got = read(STDIN_FILENO, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    const bool good = rnl_node_key_parse(text, key);
    sodium_memzero(text, sizeof text);
    if (!good)
        fprintf(stderr, "runnel key: what came at standard input is no key: it has %d hexadecimal digits\n",
                2 * RNL_NODE_KEY_BYTES);
    return good;
}

static int show(const unsigned char key[RNL_NODE_KEY_BYTES], const char *file, int secret)
{
    char print[RNL_NODE_KEY_PRINT], text[2 * RNL_NODE_KEY_BYTES + 1];
    if (secret) {
        puts(sodium_bin2hex(text, sizeof text, key, RNL_NODE_KEY_BYTES));
        sodium_memzero(text, sizeof text);
        return fflush(stdout) == 0 ? 0 : EXIT_OSERR;
    }
    rnl_node_key_print(key, print);
    printf("key %s\nfile %s\nport %u of a user's daemon, %u of a node's\n", print, file, rnl_node_key_port(key, false),
           rnl_node_key_port(key, true));
    return 0;
}

int rnl_tool_key(int argc, char **argv)
{
    struct key_arguments a = {0};
    unsigned char key[RNL_NODE_KEY_BYTES];
    char file[4096];
    if (argp_parse(&argp, argc, argv, ARGP_NO_EXIT, NULL, &a) != 0)
        return EXIT_USAGE;
    int status = a.file ? 0 : rnl_node_key_file(file, sizeof file);
    if (status < 0 || sodium_init() < 0)
        return failed(status);
    if (a.file)
        snprintf(file, sizeof file, "%s", a.file);
    if (a.makes)
        randombytes_buf(key, sizeof key);
    else if (a.installs && !read_input(key))
        return EXIT_NO_INPUT;
    status = a.makes || a.installs ? rnl_node_key_write(file, key) : rnl_node_key_read(file, key);
    const int code = status < 0 ? failed(status) : show(key, file, a.prints);
    sodium_memzero(key, sizeof key);
    return code;
}
