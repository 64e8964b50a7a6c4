/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rpc.c - `runnel rpc COMMAND`: starts a program that uses libtirpc with librunnel-rpc.so preloaded, and says before if
 * that can do nothing. */
#include "tool.h"

#include <argp.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_EXPLAIN = 256, OPT_STRICT, OPT_NOW, OPT_LIBRARY };
static const char library_name[] = "librunnel-rpc.so", preload[] = "LD_PRELOAD";

static const struct argp_option options[] = {
    {"explain", OPT_EXPLAIN, NULL, 0, "Say on standard error what is upgraded, and why something is not", 0},
    {"strict", OPT_STRICT, NULL, 0, "As a server: refuse AUTH_SYS calls with a uid that is not the calling process's",
     0},
    {"now", OPT_NOW, NULL, 0, "As a client: upgrade before the first call, not before the third", 0},
    {"print-library", OPT_LIBRARY, NULL, 0, "Print where the library is, for LD_PRELOAD, and end", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct rpc_arguments {
    char words[64]; /* of RUNNEL_RPC */
    bool print;
    char **command;
};

static void add_word(struct rpc_arguments *a, const char *word)
{
    size_t n = strlen(a->words);
    snprintf(a->words + n, sizeof a->words - n, "%s%s", n ? "," : "", word);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct rpc_arguments *a = state->input;
    (void)arg;
    switch (key) {
    case OPT_EXPLAIN:
        add_word(a, "explain");
        return 0;
    case OPT_STRICT:
        add_word(a, "strict");
        return 0;
    case OPT_NOW:
        add_word(a, "now");
        return 0;
    case OPT_LIBRARY:
        a->print = true;
        return 0;
    case ARGP_KEY_ARG: /* options after it are the command's */
        a->command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!a->command && !a->print)
            argp_error(state, "say which program to start: runnel rpc COMMAND [ARGUMENT...]");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Where a shell would find the command. Returns false if it is nowhere. */
static bool find_command(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH");
    if (strchr(name, '/'))
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && access(path, F_OK) == 0;
    for (at = at ? at : "/usr/bin:/bin"; at;) {
        size_t n = strcspn(at, ":");
        if (snprintf(path, PATH_MAX, "%.*s/%s", (int)n, n ? at : ".", name) < PATH_MAX && access(path, X_OK) == 0)
            return true;
        at = at[n] ? at + n + 1 : NULL;
    }
    return false;
}

/* A sentence on why a preloaded library does not come into this file, or NULL. */
static const char *why_not(const char *path)
{
    unsigned char head[4096];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : -1;
    bool have = fd >= 0 && fstat(fd, &st) == 0;
    if (fd >= 0)
        close(fd);
    if (have && (st.st_mode & S_ISUID || st.st_mode & S_ISGID) && geteuid() != 0)
        return "it runs with the rights of its file's owner or group, so the system preloads nothing into it";
    if (n < (ssize_t)sizeof(Elf64_Ehdr) || memcmp(head, ELFMAG, SELFMAG) != 0)
        return NULL; /* a script: its interpreter decides */
    if (head[EI_CLASS] != ELFCLASS64)
        return "it is not a 64-bit program, and the library is";
    Elf64_Ehdr e;
    memcpy(&e, head, sizeof e);
    for (unsigned i = 0; i < e.e_phnum; i++) {
        Elf64_Phdr p;
        uint64_t at = e.e_phoff + (uint64_t)i * e.e_phentsize;
        if (at + sizeof p > (uint64_t)n)
            return NULL;
        memcpy(&p, head + at, sizeof p);
        if (p.p_type == PT_INTERP)
            return NULL;
    }
    return "it is linked statically, so no library can be preloaded into it; link it with the shared libtirpc";
}

static bool set_variable(const char *library, const struct rpc_arguments *a)
{
    char value[PATH_MAX * 2];
    const char *before = getenv(preload), *words = getenv("RUNNEL_RPC");
    int n = snprintf(value, sizeof value, "%s%s%s", library, before && *before ? ":" : "", before ? before : "");
    if (n < 0 || (size_t)n >= sizeof value || setenv(preload, value, 1) != 0)
        return false;
    if (a->words[0]) {
        snprintf(value, sizeof value, "%s%s%s", a->words, words && *words ? "," : "", words ? words : "");
        return setenv("RUNNEL_RPC", value, 1) == 0;
    }
    return true;
}

int rnl_tool_rpc(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "COMMAND [ARGUMENT...]",
        .doc = "Starts a program that uses SunRPC (libtirpc), client or server. Calls between programs that were "
               "started so on one host go over shared memory; all others go as before.\v"
               "Start the servers in the same way. See runnel-rpc(7).",
        .children = rnl_tool_help,
    };
    struct rpc_arguments a = {0};
    char library[PATH_MAX], command[PATH_MAX];
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
    if (!rnl_tool_find("adapters/sunrpc/librunnel-rpc.so", library_name, library)) {
        fprintf(stderr,
                "runnel rpc: %s is neither beside this program nor in %s; Runnel was built without libtirpc "
                "(Debian: libtirpc-dev), or this part was not installed\n",
                library_name, RNL_LIBDIR);
        return RNL_TOOL_UNAVAILABLE;
    }
    if (a.print) {
        printf("%s\n", library);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (!find_command(a.command[0], command)) {
        fprintf(stderr, "runnel rpc: there is no program '%s'\n", a.command[0]);
        return RNL_TOOL_NOT_FOUND;
    }
    const char *why = why_not(command);
    if (why) {
        fprintf(stderr, "runnel rpc: '%s' would stay with libtirpc: %s\n", a.command[0], why);
        return RNL_TOOL_CANNOT_RUN;
    }
    if (strchr(library, ':') || strchr(library, ' ')) {
        fprintf(stderr, "runnel rpc: the library's path has a blank or a colon, which LD_PRELOAD cannot hold: %s\n",
                library);
        return RNL_TOOL_CANNOT_RUN;
    }
    if (!set_variable(library, &a)) {
        fprintf(stderr, "runnel rpc: LD_PRELOAD is too long already\n");
        return RNL_TOOL_CANNOT_RUN;
    }
    execvp(a.command[0], a.command);
    fprintf(stderr, "runnel rpc: '%s' cannot be started: %s\n", a.command[0], strerror(errno));
    return errno == ENOENT ? RNL_TOOL_NOT_FOUND : RNL_TOOL_CANNOT_RUN;
}
