/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer_table.c - see peer.h: what each peer needs, how its program is made and started, and the settings with which it
 * is at its best between two processes of one host. runnel-bench(1) lists the same settings. */
#include "peer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *name, *packages, *source, *header, *libs; /* header, libs: of what has no compiler of its own */
    const char *include;                                  /* its headers are in this folder of their own, or NULL */
} family_of[BENCH_PEER_FAMILIES] = {
    [BENCH_PEER_OPENMPI] = {"openmpi", "openmpi-bin libopenmpi-dev", "mpi.c", NULL, NULL, NULL},
    [BENCH_PEER_MPICH] = {"mpich", "mpich libmpich-dev", "mpi.c", NULL, NULL, NULL},
    [BENCH_PEER_UCX] = {"ucx", "libucx-dev", "ucx.c", "ucp/api/ucp.h", "-lucp -lucs", NULL},
    [BENCH_PEER_LIBFABRIC] = {"libfabric", "libfabric-dev", "libfabric.c", "rdma/fabric.h", "-lfabric", NULL},
    [BENCH_PEER_COROSYNC] = {"corosync", "corosync libcpg-dev", "corosync.c", "corosync/cpg.h", "-lcpg", NULL},
    [BENCH_PEER_TIRPC] = {"libtirpc", "libtirpc-dev", "rpc.c", "tirpc/rpc/rpc.h", "-ltirpc", "tirpc"},
};

/* The word that the program of an interface is given, see bench/peers: over shared memory, and over the network. */
static const char *const way_of[BENCH_APIS][2] = {[BENCH_OPENMPI] = {"ob1 over vader", "ob1 over TCP"},
                                                  [BENCH_OPENMPI_UCX] = {"UCX below", "UCX over TCP below"},
                                                  [BENCH_MPICH] = {"default device", "over TCP"},
                                                  [BENCH_UCX_AM] = {"am", "am"},
                                                  [BENCH_UCX_TAG] = {"tag", "tag"},
                                                  [BENCH_PROVIDER] = {"rnl", "rnl"},
                                                  [BENCH_OPENMPI_RNL] = {"rnl below", "rnl below"},
                                                  [BENCH_MPICH_RNL] = {"rnl below", "rnl below"},
                                                  [BENCH_UCX_PUT] = {"put", "put"},
                                                  [BENCH_LIBFABRIC] = {"shm", "tcp;ofi_rxm"},
                                                  [BENCH_COROSYNC] = {"udpu", "udpu"},
                                                  [BENCH_RPC] = {"upgraded"},
                                                  [BENCH_TIRPC_TCP] = {"tcp"},
                                                  [BENCH_TIRPC_UDP] = {"udp"},
                                                  [BENCH_TIRPC_UNIX] = {"unix"}};

struct peer_setting {
    const char *name,
        *value; /* %w the folder for files, %s the folder in memory, %i the interface, %p the provider's */
};

static const struct peer_setting for_all[] = {
    {"HWLOC_COMPONENTS", "-gl,-opencl"}, /* or the launchers look for displays for some tenths of a second */
    {"TMPDIR", "%w"},
    {"UCX_POSIX_DIR", "%s"},
    {"UCX_WARN_UNUSED_ENV_VARS", "n"},
    {NULL, NULL},
};

static const struct peer_setting openmpi[] = {
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"OMPI_MCA_mpi_yield_when_idle", "0"}, /* --oversubscribe would turn it on */
    {"OMPI_MCA_orte_tmpdir_base", "%w"},
    {"OMPI_MCA_btl_vader_backing_directory", "%s"},
    {NULL, NULL},
};

static const struct peer_setting ways[][6] = {
    [BENCH_OPENMPI] = {{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "self,vader"}},
    [BENCH_OPENMPI_UCX] = {{"OMPI_MCA_pml", "ucx"},
                           {"OMPI_MCA_opal_common_ucx_tls", "any"},
                           {"OMPI_MCA_opal_common_ucx_devices", "any"},
                           {"UCX_TLS", "self,shm"}},
    [BENCH_MPICH] = {{NULL, NULL}},
    [BENCH_UCX_AM] = {{"UCX_TLS", "self,shm"}},
    [BENCH_UCX_TAG] = {{"UCX_TLS", "self,shm"}},
    [BENCH_UCX_PUT] = {{"UCX_TLS", "self,posix"}},
    [BENCH_LIBFABRIC] = {{"FI_PROVIDER", "shm"}},
    [BENCH_PROVIDER] = {{"FI_PROVIDER", "rnl"}, {"FI_PROVIDER_PATH", "%p"}},
    /* as `runnel mpi` sets them */
    [BENCH_OPENMPI_RNL] = {{"FI_PROVIDER", "rnl"},
                           {"FI_PROVIDER_PATH", "%p"},
                           {"OMPI_MCA_pml", "cm"},
                           {"OMPI_MCA_mtl", "ofi"},
                           {"OMPI_MCA_btl", "self,ofi"}},
    [BENCH_MPICH_RNL] = {{"FI_PROVIDER", "rnl"}, {"FI_PROVIDER_PATH", "%p"}, {"MPIR_CVAR_NOLOCAL", "1"}},
    [BENCH_TIRPC_UNIX] = {{NULL, NULL}},
};

/* The settings of each peer over a network. Libfabric's datagrams (udp;ofi_rxd) are slower by far than its TCP. */
static const struct peer_setting ways_tcp[][6] = {
    [BENCH_OPENMPI] = {{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "self,tcp"}, {"OMPI_MCA_btl_tcp_if_include", "%i"}},
    [BENCH_OPENMPI_UCX] = {{"OMPI_MCA_pml", "ucx"},
                           {"OMPI_MCA_opal_common_ucx_tls", "any"},
                           {"OMPI_MCA_opal_common_ucx_devices", "any"},
                           {"UCX_TLS", "self,tcp"}},
    /* with UCX below, as Debian builds it, or with libfabric; MPIR_CVAR_NOLOCAL does not reach below */
    [BENCH_MPICH] = {{"MPIR_CVAR_NOLOCAL", "1"},
                     {"UCX_TLS", "self,tcp"},
                     {"UCX_NET_DEVICES", "%i"},
                     {"FI_PROVIDER", "tcp"},
                     {"FI_TCP_IFACE", "%i"}},
    [BENCH_UCX_AM] = {{"UCX_TLS", "self,tcp"}, {"UCX_NET_DEVICES", "%i"}},
    [BENCH_UCX_TAG] = {{"UCX_TLS", "self,tcp"}, {"UCX_NET_DEVICES", "%i"}},
    [BENCH_UCX_PUT] = {{"UCX_TLS", "self,tcp"}, {"UCX_NET_DEVICES", "%i"}},
    [BENCH_LIBFABRIC] = {{"FI_PROVIDER", "tcp;ofi_rxm"}, {"FI_TCP_IFACE", "%i"}},
};

void bench_words_add(struct bench_words *w, const char *format, ...)
{
    va_list ap;
    size_t room = sizeof w->text - w->used;
    va_start(ap, format);
    int n = vsnprintf(w->text + w->used, room, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= room || w->n == BENCH_PEER_WORDS)
        return;
    w->word[w->n++] = w->text + w->used;
    w->word[w->n] = NULL;
    w->used += (size_t)n + 1;
}

enum bench_peer_family bench_peer_family(unsigned api)
{
    switch (api) {
    case BENCH_OPENMPI:
    case BENCH_OPENMPI_UCX:
    case BENCH_OPENMPI_RNL:
        return BENCH_PEER_OPENMPI;
    case BENCH_MPICH:
    case BENCH_MPICH_RNL:
        return BENCH_PEER_MPICH;
    case BENCH_UCX_AM:
    case BENCH_UCX_TAG:
    case BENCH_UCX_PUT:
        return BENCH_PEER_UCX;
    case BENCH_COROSYNC:
        return BENCH_PEER_COROSYNC;
    case BENCH_RPC:
    case BENCH_TIRPC_TCP:
    case BENCH_TIRPC_UDP:
    case BENCH_TIRPC_UNIX:
        return BENCH_PEER_TIRPC;
    default:
        return BENCH_PEER_LIBFABRIC;
    }
}

const char *bench_peer_name(enum bench_peer_family f)
{
    return family_of[f].name;
}

const char *bench_peer_packages(enum bench_peer_family f)
{
    return family_of[f].packages;
}

static bool is_mpi(enum bench_peer_family f)
{
    return f == BENCH_PEER_OPENMPI || f == BENCH_PEER_MPICH;
}

/* Debian keeps several MPIs side by side and tells them apart by a suffix. */
static void add_mpi_tool(const struct bench_peers *p, enum bench_peer_family f, const char *tool, struct bench_words *w)
{
    if (p->prefix[f])
        bench_words_add(w, "%s/bin/%s", p->prefix[f], tool);
    else
        bench_words_add(w, "%s.%s", tool, family_of[f].name);
}

static const char *launcher(enum bench_peer_family f)
{
    return f == BENCH_PEER_OPENMPI ? "mpirun" : "mpiexec";
}

void bench_peer_needs(const struct bench_peers *p, enum bench_peer_family f, struct bench_words *what)
{
    if (is_mpi(f)) {
        add_mpi_tool(p, f, "mpicc", what);
        add_mpi_tool(p, f, launcher(f), what);
    } else {
        bench_words_add(what, "cc");
        bench_words_add(what, "%s/include/%s", p->prefix[f] ? p->prefix[f] : "/usr", family_of[f].header);
        if (f == BENCH_PEER_COROSYNC)
            bench_words_add(what, "%s/sbin/corosync", p->prefix[f] ? p->prefix[f] : "/usr");
    }
}

void bench_peer_compile(const struct bench_peers *p, unsigned api, const char *program, struct bench_words *w)
{
    static const char *const common[] = {"bench/peers/common.c", "bench/process.c", "bench/area.c",
                                         "bench/machine.c",      "bench/stats.c",   "src/base/hist.c"};
    enum bench_peer_family f = bench_peer_family(api);
    const char *prefix = p->prefix[f];
    if (is_mpi(f))
        add_mpi_tool(p, f, "mpicc", w);
    else
        bench_words_add(w, "cc");
    /* -w: MPICH's own header makes gcc warn */
    for (const char *const *o =
             (const char *const[]){"-std=c11", "-O2", "-w", "-D_GNU_SOURCE", "-DRNL_VERSION=\"\"", NULL};
         *o; o++)
        bench_words_add(w, "%s", *o);
    bench_words_add(w, "-I%s/bench", p->sources);
    bench_words_add(w, "-I%s/src", p->sources);
    if (f == BENCH_PEER_COROSYNC)
        bench_words_add(w, "-DCOROSYNC=\"%s/sbin/corosync\"", prefix ? prefix : "/usr");
    bench_words_add(w, "-o");
    bench_words_add(w, "%s", program);
    bench_words_add(w, "%s/bench/peers/%s", p->sources, family_of[f].source);
    if (family_of[f].include)
        bench_words_add(w, "-I%s/include/%s", prefix ? prefix : "/usr", family_of[f].include);
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        bench_words_add(w, "%s/%s", p->sources, common[i]);
    if (!is_mpi(f) && prefix) {
        bench_words_add(w, "-I%s/include", prefix);
        bench_words_add(w, "-L%s/lib", prefix);
        bench_words_add(w, "-Wl,-rpath,%s/lib", prefix);
    }
    for (const char *lib = family_of[f].libs; lib && *lib;) {
        size_t n = strcspn(lib, " ");
        bench_words_add(w, "%.*s", (int)n, lib);
        lib += n + (lib[n] == ' ');
    }
}

/* What the launchers of MPIs call as they would call ssh, [OPTION ...] HOST COMMAND ...: the other host is the second
 * namespace, and has a name of its own, since they tell hosts apart by that, too. */
int bench_peer_reach(const struct bench_net *net, const char *path)
{
    FILE *f = fopen(path, "wxe");
    if (!f)
        return -1;
    fprintf(f,
            "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nshift\n"
            "exec ip netns exec %s unshare -u sh -c 'hostname \"$0\" && exec sh -c \"$*\"' %s \"$@\"\n",
            net->space[1], net->space[1]);
    int failed = fchmod(fileno(f), 0700) != 0;
    return fclose(f) || failed ? -1 : 0;
}

/* Each rank on a host of its own. */
static void add_hosts(const struct bench_net *net, enum bench_peer_family f, const char *reach, struct bench_words *w)
{
    const char *const openmpi_words[] = {"--mca",
                                         "plm",
                                         "rsh",
                                         "--mca",
                                         "plm_rsh_agent",
                                         reach,
                                         "--mca",
                                         "oob_tcp_if_include",
                                         BENCH_NET_INTERFACE,
                                         "--mca",
                                         "orte_keep_fqdn_hostnames",
                                         "1",
                                         "--host",
                                         NULL};
    const char *const mpich_words[] = {"-launcher", "ssh", "-launcher-exec", reach, "-iface", BENCH_NET_INTERFACE,
                                       "-ppn",      "1",   "-hosts",         NULL};
    for (const char *const *o = f == BENCH_PEER_OPENMPI ? openmpi_words : mpich_words; *o; o++)
        bench_words_add(w, "%s", *o);
    bench_words_add(w, "%s,%s", net->address[0], net->address[1]);
}

int bench_peer_command(const struct bench_peers *p, unsigned api, unsigned rank, const char *program, const char *reach,
                       struct bench_words *w)
{
    enum bench_peer_family f = bench_peer_family(api);
    if (*p->area->net.space[0]) { /* by ip(8), which mounts its /sys, too: UCX looks there for interfaces */
        for (const char *const *o = (const char *const[]){"ip", "netns", "exec", NULL}; *o; o++)
            bench_words_add(w, "%s", *o);
        bench_words_add(w, "%s", p->area->net.space[is_mpi(f) ? 0 : rank]);
    }
    if (is_mpi(f))
        add_mpi_tool(p, f, launcher(f), w);
    if (is_mpi(f) && *p->area->net.space[0])
        add_hosts(&p->area->net, f, reach, w);
    if (f == BENCH_PEER_OPENMPI)
        bench_words_add(w, "--oversubscribe"); /* it may count fewer slots than there are processors */
    if (is_mpi(f)) {
        static const char *const bind[BENCH_PEER_FAMILIES] = {"--bind-to", "-bind-to"};
        bench_words_add(w, "-n");
        bench_words_add(w, "2");
        bench_words_add(w, "%s", bind[f]); /* its processes bind themselves to our two cores */
        bench_words_add(w, "none");
    }
    if (api == BENCH_RPC) { /* runnel rpc, by this program itself */
        bench_words_add(w, "/proc/self/exe");
        bench_words_add(w, "rpc");
    }
    bench_words_add(w, "%s", program);
    bench_words_add(w, "%s", p->area_path);
    bench_words_add(w, "%u", api);
    bench_words_add(w, "%s", way_of[api][p->area->net.udp]);
    bench_words_add(w, "%u", rank);
    return is_mpi(f) || f == BENCH_PEER_COROSYNC ? 1 : 2;
}

static void set(const struct bench_peers *p, const struct peer_setting *s, const char *work, const char *shm)
{
    if (!strcmp(s->value, "%w"))
        setenv(s->name, work, 1);
    else if (!strcmp(s->value, "%s"))
        setenv(s->name, shm, 1);
    else if (!strcmp(s->value, "%p"))
        setenv(s->name, p->provider, 1);
    else if (!strcmp(s->value, "%i"))
        setenv(s->name, *p->area->net.space[0] ? BENCH_NET_INTERFACE : "lo", 1);
    else
        setenv(s->name, s->value, 1);
}

void bench_peer_environment(const struct bench_peers *p, unsigned api, const char *work, const char *shm)
{
    for (const struct peer_setting *s = for_all; s->name; s++)
        set(p, s, work, shm);
    if (bench_peer_family(api) == BENCH_PEER_OPENMPI) {
        for (const struct peer_setting *s = openmpi; s->name; s++)
            set(p, s, work, shm);
        if (p->area->one_core)
            setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
    }
    for (const struct peer_setting *s = p->area->net.udp ? ways_tcp[api] : ways[api]; s->name; s++)
        set(p, s, work, shm);
}
