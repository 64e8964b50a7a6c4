/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kit.c - `runnel paper new` and `build`: a folder for a protocol of one's own, and a system made of it. The folder's
 * files are built in, and so are the scripts that compile (kit/compile, kit/build); only the headers lie elsewhere. */
#include "sim/myrinet/command/command.h"
#include "sim/myrinet/systems/added.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const files[] = {"README.md", "layout.h", "firmware.c", "host.c", "native.c"};
enum { FILES = sizeof files / sizeof files[0] };

int myri_cmd_is_name(const char *name)
{
    if (!isalpha((unsigned char)name[0]) || strlen(name) > MYRI_CMD_NAME)
        return 0;
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return 0;
    return 1;
}

/* What the step has, or else the first one, which the later ones change. */
static const struct myri_data *file_of(const char *step, const char *file)
{
    char name[64];
    snprintf(name, sizeof name, "kit/%s/%s", step, file);
    const struct myri_data *d = myri_data_find(name);
    snprintf(name, sizeof name, "kit/simple/%s", file);
    return d ? d : myri_data_find(name);
}

static int is_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The text, with the name instead of each word my_... */
static int write_file(const char *folder, const char *file, const struct myri_data *d, const char *name)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "wx");
    if (!f)
        return myri_cmd_cannot("cannot write", path);
    const char *from = (const char *)d->bytes;
    for (const char *p = from; (p = strstr(p, "my_")) != NULL;) {
        int begins = p == (const char *)d->bytes || !is_in_word(p[-1]);
        if (begins)
            fprintf(f, "%.*s%s", (int)(p - from), from, name);
        while (is_in_word(*p))
            p++;
        if (begins)
            from = p;
    }
    fputs(from, f);
    int failed = ferror(f);
    if (fclose(f) != 0 || failed)
        return myri_cmd_cannot("cannot write", path);
    return 0;
}

const char *myri_cmd_steps(void)
{
    static char steps[160];
    size_t n = 0;
    for (const struct myri_data *d = myri_data_table; d->name; d++) {
        const char *end = strstr(d->name, "/host.c");
        if (strncmp(d->name, "kit/", 4) == 0 && end && n < sizeof steps)
            n += (size_t)snprintf(steps + n, sizeof steps - n, "%s%.*s", n ? ", " : "", (int)(end - d->name - 4),
                                  d->name + 4);
    }
    return steps;
}

int myri_cmd_new(struct myri_cmd_options *o)
{
    const char *step = o->from ? o->from : "simple";
    char folder[PATH_MAX], needed[64];
    if (!o->what)
        return myri_cmd_wrong("say how it is called: runnel paper new NAME");
    size_t n = strlen(o->what);
    while (n > 1 && o->what[n - 1] == '/')
        n--;
    if (n >= sizeof folder)
        return myri_cmd_wrong("the path of the folder is too long: %zu bytes, of %d at most", n, PATH_MAX - 1);
    snprintf(folder, sizeof folder, "%.*s", (int)n, o->what);
    const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
    if (!myri_cmd_is_name(name))
        return myri_cmd_wrong("'%s' cannot be the name of a system: take letters, digits and _, a letter first, %d at "
                              "most; a path to it may stand in front",
                              name, MYRI_CMD_NAME);
    if (myri_system_find(name))
        return myri_cmd_wrong("there is a system '%s' already, which a command would take instead: choose another name",
                              name);
    snprintf(needed, sizeof needed, "kit/%.40s/host.c", step);
    if (!myri_data_find(needed))
        return myri_cmd_wrong("the tutorial has no step '%s'; it has: %s", step, myri_cmd_steps());
    if (mkdir(folder, 0777) < 0)
        return errno == EEXIST ? myri_cmd_wrong("%s is there already, and is left as it is: choose another name, or "
                                                "remove it",
                                                folder)
               : errno == ENOENT
                   ? myri_cmd_wrong("%s lies in a folder that is not there: make that one first (mkdir -p)", folder)
                   : myri_cmd_cannot("cannot make the folder", folder);
    for (int i = 0; i < FILES; i++) {
        int rc = write_file(folder, files[i], file_of(step, files[i]), name);
        if (rc)
            return rc;
    }
    printf("%s/ has layout.h, firmware.c, host.c, native.c and README.md; next: runnel paper build %s\n", folder,
           folder);
    return 0;
}

/* ---- build ---- */

enum { INCLUDES = 8 };
struct headers {
    char text[8 * PATH_MAX];
    char *folder[INCLUDES];
    int n;
};

/* Finds the headers of the build tree that this command lies in, or else of its installation. */
static int find_headers(struct headers *h)
{
    char self[PATH_MAX / 2], path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (!slash)
        return myri_cmd_cannot("cannot read", "/proc/self/exe");
    *slash = 0;
    snprintf(path, sizeof path, "%s/../sim/paper_kit", self);
    FILE *f = fopen(path, "r");
    if (f) {
        size_t got = fread(h->text, 1, sizeof h->text - 1, f);
        fclose(f);
        h->text[got] = 0;
        char *save = NULL;
        for (char *l = strtok_r(h->text, "\n", &save); l && h->n < INCLUDES; l = strtok_r(NULL, "\n", &save))
            h->folder[h->n++] = l;
        return 0;
    }
    snprintf(h->text, sizeof h->text, "%s/%s/runnel/paper", self, RNL_INCLUDEDIR_FROM_BIN);
    int length = snprintf(path, sizeof path, "%s/%s/runnel/paper/sim/myrinet/kit/kit.h", self, RNL_INCLUDEDIR_FROM_BIN);
    if (length >= (int)sizeof path || access(path, R_OK) != 0)
        return myri_cmd_wrong("the headers for protocols of one's own are not there (%s): install runnel with them",
                              path);
    h->folder[h->n++] = h->text;
    return 0;
}

/* Who ends the build ends its compilers: they are a group, whose script removes what it has made. */
static volatile sig_atomic_t builders, ended_by;

static void ends(int number)
{
    ended_by = number;
    if (builders)
        kill(-(pid_t)builders, SIGTERM);
}

/* The script, with what belongs to it; its exit status. */
static int run_script(const char *folder, const char *name, int native, const struct headers *h)
{
    const struct myri_data *compile = myri_data_find("kit/compile"), *build = myri_data_find("kit/build");
    char *script = malloc(compile->n + build->n + 1);
    if (!script)
        return myri_cmd_no_memory(compile->n + build->n + 1);
    memcpy(script, compile->bytes, compile->n);
    memcpy(script + compile->n, build->bytes, build->n + 1);
    const char *argv[8 + INCLUDES] = {"bash", "-c", script, "build", folder, name, native ? "native" : "lanai"};
    for (int i = 0; i < h->n; i++)
        argv[7 + i] = h->folder[i];
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    enum { SIGNALS = sizeof signals / sizeof signals[0] };
    const struct sigaction action = {.sa_handler = ends};
    struct sigaction before[SIGNALS];
    sigset_t block, usual;
    sigemptyset(&block);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&block, signals[i]);
    fflush(NULL);
    sigprocmask(SIG_BLOCK, &block, &usual); /* until it is known whom they concern */
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        sigprocmask(SIG_SETMASK, &usual, NULL);
        execvp("bash", (char *const *)(uintptr_t)argv);
        myri_cmd_cannot("cannot run", "bash, which compiles");
        _exit(127);
    }
    if (child > 0)
        setpgid(child, child); /* whichever of both is first */
    builders = child > 0 ? child : 0;
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    sigprocmask(SIG_SETMASK, &usual, NULL);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    builders = 0;
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
    free(script);
    if (ended_by)
        raise(ended_by);
    if (child < 0)
        return myri_cmd_cannot("cannot start", "bash");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The first line of host.c that has the word, or 0. */
static int line_with(const char *folder, const char *word)
{
    char path[PATH_MAX + 64], text[1024];
    size_t length = strlen(word);
    int found = 0, line = 0;
    snprintf(path, sizeof path, "%s/host.c", folder);
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(text, sizeof text, f)) {
        line++;
        for (const char *p = text; (p = strstr(p, word)) != NULL; p += length)
            if ((p == text || !is_in_word(p[-1])) && !is_in_word(p[length]))
                found = line;
    }
    if (f)
        fclose(f);
    return found;
}

/* Host code that uses what neither it nor this command has cannot be loaded: who wrote it is told the name. */
static int lacks_nothing(const char *folder, const char *path)
{
    static const char before[] = "undefined symbol: ";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return dlclose(library), 0;
    const char *why = dlerror(), *is = why ? strstr(why, before) : NULL;
    if (!is)
        return 0; /* who loads it says what else there is */
    char name[128], where[32] = "";
    is += sizeof before - 1;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(is, " ,)"), is);
    int line = line_with(folder, name);
    if (line)
        snprintf(where, sizeof where, ":%d", line);
    fprintf(stderr,
            "runnel paper: host.c%s uses %s, which neither it nor runnel has: is the name right (sim/myrinet/hw/hw.h)? "
            "Else define it there\n",
            where, name);
    return 1;
}

/* What loaders say of it, of host and of card: what only a run would find else. */
static int look_at(const char *folder, const char *path)
{
    const struct myri_system *system;
    struct myri_lanai card;
    if (lacks_nothing(folder, path) || myri_cmd_own(path, &system))
        return 1;
    const struct myri_data *object = myri_system_object(system), *lines = myri_system_lines(system);
    if (myri_lanai_load(&card, object->bytes, object->n) < 0) {
        char line[80];
        if (!*card.undefined.name)
            return myri_cmd_failed(), 1;
        myri_lanai_line((const char *)lines->bytes, card.undefined.at, line, sizeof line);
        fprintf(stderr, "runnel paper: %s uses %s, which the firmware does not define; %s\n", line, card.undefined.name,
                myri_lanai_lacks(card.undefined.name));
        return 1;
    }
    printf("%s: %u bytes of firmware, %u bytes of the card's memory with it\n", path, card.code_end, card.data_end);
    myri_lanai_fini(&card);
    return 0;
}

static int look_at_all(const char *folder, const char *name)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    int rc = look_at(folder, path);
    if (rc)
        (void)unlink(path); /* nobody is to run it */
    return rc;
}

int myri_cmd_build(struct myri_cmd_options *o)
{
    static struct headers headers;
    char full[PATH_MAX], folder[PATH_MAX];
    struct stat is;
    if (!o->what)
        return myri_cmd_wrong("name a folder that runnel paper new has made: runnel paper build FOLDER");
    if (!realpath(o->what, full) || stat(full, &is) < 0)
        return myri_cmd_wrong("%s: %s; runnel paper new makes a folder", o->what, strerror(errno));
    if (!S_ISDIR(is.st_mode))
        return myri_cmd_wrong("%s is no folder; runnel paper new makes one", o->what);
    const char *name = strrchr(full, '/') + 1;
    if (!myri_cmd_is_name(name))
        return myri_cmd_wrong("the folder's name '%s' cannot be that of a system: take letters, digits and _, a letter "
                              "first, %d at most",
                              name, MYRI_CMD_NAME);
    snprintf(folder, sizeof folder, "%s", o->what);
    for (size_t n = strlen(folder); n > 1 && folder[n - 1] == '/'; n--)
        folder[n - 1] = 0;
    int rc = find_headers(&headers);
    rc = rc ? rc : run_script(folder, name, o->native, &headers);
    if (rc)
        return rc;
    if (!o->native)
        return look_at_all(folder, name);
    printf("%s/%s-native: run it; it takes a number of turns and a seed\n", folder, name);
    return 0;
}
