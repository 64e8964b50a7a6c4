/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix.c - see pmix.h. Fences of one host are libpmix's own matter. Of one over several hosts it tells in
 * its thread, which hands what the ranks bring to the loop. */
#include "launcher/mpi/pmix.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEARCHED = 64 << 20 /* bytes of a program */ };

bool rnl_program_names(const char *path, const char *name)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const size_t bytes = fstat(fd, &st) < 0 ? 0 : st.st_size < SEARCHED ? (size_t)st.st_size : SEARCHED;
    void *at = bytes > 0 ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    const bool found = at != MAP_FAILED && memmem(at, bytes, name, strlen(name));
    if (at != MAP_FAILED)
        (void)munmap(at, bytes);
    close(fd);
    return found;
}

#if RNL_HAVE_PMIX
#include <dlfcn.h>
#include <errno.h>
#include <pmix_server.h>
#include <pthread.h>

static struct rnl_pmix_server {
    pmix_status_t (*init)(pmix_server_module_t *, pmix_info_t *, size_t);
    pmix_status_t (*regex)(const char *, char **);
    pmix_status_t (*ppn)(const char *, char **);
    pmix_status_t (*register_nspace)(const pmix_nspace_t, int, pmix_info_t *, size_t, pmix_op_cbfunc_t, void *);
    pmix_status_t (*register_client)(const pmix_proc_t *, uid_t, gid_t, void *, pmix_op_cbfunc_t, void *);
    pmix_status_t (*setup_fork)(const pmix_proc_t *, char ***);
    const char *(*text)(pmix_status_t);
    pmix_nspace_t nspace;
    uint32_t size;
    char **variables;
    uv_async_t wake;
    /* -- under the lock: a fence over all hosts -- */
    pthread_mutex_t lock;
    bool asked, taken;
    char *bytes;
    size_t count;
    pmix_modex_cbfunc_t done;
    void *arg;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool load(struct rnl_pmix_server *s)
{
    void *lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        size_t at;
    } wanted[] = {{"PMIx_server_init", offsetof(struct rnl_pmix_server, init)},
                  {"PMIx_generate_regex", offsetof(struct rnl_pmix_server, regex)},
                  {"PMIx_generate_ppn", offsetof(struct rnl_pmix_server, ppn)},
                  {"PMIx_server_register_nspace", offsetof(struct rnl_pmix_server, register_nspace)},
                  {"PMIx_server_register_client", offsetof(struct rnl_pmix_server, register_client)},
                  {"PMIx_server_setup_fork", offsetof(struct rnl_pmix_server, setup_fork)},
                  {"PMIx_Error_string", offsetof(struct rnl_pmix_server, text)}};
    for (size_t i = 0; lib && i < sizeof wanted / sizeof wanted[0]; i++) {
        void *f = dlsym(lib, wanted[i].name);
        if (!f)
            return false;
        memcpy((char *)s + wanted[i].at, &f, sizeof f);
    }
    return lib;
}

/* ---- in the thread of libpmix ---- */

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
                              char *data, size_t ndata, pmix_modex_cbfunc_t done, void *arg)
{
    struct rnl_pmix_server *s = &server;
    const bool all = nprocs == s->size || (nprocs == 1 && procs[0].rank == PMIX_RANK_WILDCARD);
    (void)info, (void)ninfo;
    pthread_mutex_lock(&s->lock);
    const bool good = all && !s->asked;
    if (good) {
        s->asked = true;
        s->taken = false;
        s->bytes = data;
        s->count = ndata;
        s->done = done;
        s->arg = arg;
    }
    pthread_mutex_unlock(&s->lock);
    if (good)
        (void)uv_async_send(&s->wake);
    return good ? PMIX_SUCCESS : PMIX_ERR_NOT_SUPPORTED;
}

static void release(void *bytes)
{
    free(bytes);
}

/* ---- fences, in the loop ---- */

static void on_wake(uv_async_t *handle)
{
    (void)handle; /* the work follows each turn of the loop */
}

bool rnl_pmix_server_fence(struct rnl_pmix_server *s, const void **bytes, size_t *count)
{
    pthread_mutex_lock(&s->lock);
    const bool asked = s->asked && !s->taken;
    s->taken = s->asked;
    *bytes = s->bytes;
    *count = s->count;
    pthread_mutex_unlock(&s->lock);
    return asked;
}

void rnl_pmix_server_fenced(struct rnl_pmix_server *s, const void *bytes, size_t count)
{
    char *copy = malloc(count + 1);
    if (copy)
        memcpy(copy, bytes, count);
    pthread_mutex_lock(&s->lock);
    const pmix_modex_cbfunc_t done = s->done;
    void *arg = s->arg;
    s->asked = false;
    pthread_mutex_unlock(&s->lock);
    done(copy ? PMIX_SUCCESS : PMIX_ERR_NOMEM, copy, copy ? count : 0, arg, release, copy);
}

/* ---- the job ---- */

static pmix_info_t *number(pmix_info_t *i, const char *key, uint32_t value)
{
    *i = (pmix_info_t){.value = {.type = PMIX_UINT32, .data.uint32 = value}};
    strncpy(i->key, key, sizeof i->key - 1);
    return i + 1;
}

static pmix_info_t *text(pmix_info_t *i, const char *key, const char *value)
{
    *i = (pmix_info_t){.value = {.type = PMIX_STRING, .data.string = (char *)(uintptr_t)value}};
    strncpy(i->key, key, sizeof i->key - 1);
    return i + 1;
}

/* Appends "0,1,2" for ranks 0 to 2. */
static void list_ranks(struct rnl_pack *p, const struct rnl_job_host *h)
{
    char number[16];
    for (uint32_t r = h->first; r < h->first + h->count; r++)
        rnl_pack_bytes(p, number, (size_t)snprintf(number, sizeof number, "%s%u", r > h->first ? "," : "", r));
}

static pmix_status_t describe(struct rnl_pmix_server *s, const struct rnl_job_spec *spec, const char *host)
{
    const struct rnl_job_host *own = &spec->at[spec->host];
    struct rnl_pack names = {.at = NULL}, ranks = {.at = NULL}, peers = {.at = NULL};
    char *nodes = NULL, *procs = NULL;
    pmix_info_t info[16], *i = info;
    for (uint32_t h = 0; h < spec->hosts; h++) {
        rnl_pack_bytes(&names, ",", h > 0);
        rnl_pack_bytes(&names, spec->at[h].name, strlen(spec->at[h].name));
        rnl_pack_bytes(&ranks, ";", h > 0);
        list_ranks(&ranks, &spec->at[h]);
    }
    list_ranks(&peers, own);
    rnl_pack_bytes(&names, "", 1);
    rnl_pack_bytes(&ranks, "", 1);
    rnl_pack_bytes(&peers, "", 1);
    pmix_status_t status = names.failed || ranks.failed || peers.failed ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
    if (status == PMIX_SUCCESS)
        status = s->regex((char *)names.at, &nodes);
    if (status == PMIX_SUCCESS)
        status = s->ppn((char *)ranks.at, &procs);
    if (status == PMIX_SUCCESS) {
        i = number(i, PMIX_JOB_SIZE, spec->size);
        i = number(i, PMIX_UNIV_SIZE, spec->size);
        i = number(i, PMIX_MAX_PROCS, spec->size);
        i = number(i, PMIX_JOB_NUM_APPS, 1);
        i = number(i, PMIX_APPNUM, 0);
        i = number(i, PMIX_NUM_NODES, spec->hosts);
        i = number(i, PMIX_NODEID, spec->host);
        i = number(i, PMIX_LOCAL_SIZE, own->count);
        i = number(i, PMIX_NODE_SIZE, own->count);
        i = text(i, PMIX_LOCAL_PEERS, (char *)peers.at);
        i = text(i, PMIX_HOSTNAME, host);
        i = text(i, PMIX_NODE_MAP, nodes);
        i = text(i, PMIX_PROC_MAP, procs);
        status = s->register_nspace(s->nspace, (int)own->count, info, (size_t)(i - info), NULL, NULL);
    }
    free(nodes);
    free(procs);
    rnl_pack_free(&names);
    rnl_pack_free(&ranks);
    rnl_pack_free(&peers);
    return status;
}

struct rnl_pmix_server *rnl_pmix_server_new(uv_loop_t *loop, const struct rnl_job_spec *spec, const char *host,
                                            char *sentence, size_t room)
{
    static pmix_server_module_t module;
    struct rnl_pmix_server *s = &server;
    pmix_info_t info[2], *end = text(text(info, PMIX_SERVER_TMPDIR, "/tmp"), PMIX_HOSTNAME, host);
    if (!load(s)) {
        snprintf(sentence, room, "libpmix.so.2 cannot be loaded: install it (Debian: libpmix2)");
        return NULL;
    }
    s->size = spec->size;
    snprintf(s->nspace, sizeof s->nspace, "runnel-%016llx", (unsigned long long)spec->number);
    setenv("PMIX_MCA_gds", "hash", 1); /* which makes no files */
    /* Open MPI 4 asks PMIx only if it knows the launcher by name; of those with nothing but PMIx it knows IBM's. */
    setenv("JSM_JSRUN_PORT", "0", 1);
    if (spec->hosts > 1)
        module.fence_nb = on_fence;
    (void)uv_async_init(loop, &s->wake, on_wake);
    uv_unref((uv_handle_t *)&s->wake);
    pmix_status_t status = s->init(&module, info, (size_t)(end - info));
    if (status == PMIX_SUCCESS)
        status = describe(s, spec, host);
    if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
        return s;
    snprintf(sentence, room, "its library, libpmix.so.2, cannot serve them (%s)", s->text(status));
    return NULL;
}

int rnl_pmix_server_add(struct rnl_pmix_server *s, uint32_t rank, char ***out)
{
    pmix_proc_t proc = {.rank = rank};
    memcpy(proc.nspace, s->nspace, sizeof proc.nspace);
    pmix_status_t status = s->register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL);
    for (char **v = s->variables; v && *v; v++)
        free(*v);
    free(s->variables);
    s->variables = NULL;
    if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
        status = s->setup_fork(&proc, &s->variables);
    *out = s->variables;
    return status == PMIX_SUCCESS ? 0 : -ENOMEM;
}

#else

struct rnl_pmix_server *rnl_pmix_server_new(uv_loop_t *loop, const struct rnl_job_spec *spec, const char *host,
                                            char *sentence, size_t room)
{
    (void)loop, (void)spec, (void)host;
    snprintf(sentence, room,
             "this command was built without libpmix (Debian: libpmix-dev): build it again, or start the "
             "program by mpirun");
    return NULL;
}

int rnl_pmix_server_add(struct rnl_pmix_server *s, uint32_t rank, char ***out)
{
    (void)s, (void)rank, (void)out;
    return 0;
}

bool rnl_pmix_server_fence(struct rnl_pmix_server *s, const void **bytes, size_t *count)
{
    (void)s, (void)bytes, (void)count;
    return false;
}

void rnl_pmix_server_fenced(struct rnl_pmix_server *s, const void *bytes, size_t count)
{
    (void)s, (void)bytes, (void)count;
}
#endif
