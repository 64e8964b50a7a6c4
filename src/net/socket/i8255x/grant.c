/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grant.c - takes cards through uio_pci_generic or vfio-pci. */
#include "net/socket/i8255x/grant.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "net/socket/i8255x/card.h"

enum { MEMORY_SPACE = 2, BUS_MASTER = 4 }; /* bits of the command word */
static const uint64_t iova = 0x40000000;   /* an address of our choice, below 4 GiB */

static int failed(const char *slot, const char *what)
{
    return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "card %s cannot be taken: %s", slot, what);
}

/* ---- drivers ---- */

static bool write_text(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    const int e = errno;
    if (fd >= 0)
        close(fd);
    errno = e;
    return good;
}

/* The last part of the name that a link leads to. */
static bool read_link(const char *slot, const char *file, char *out, size_t room)
{
    char path[128], to[256];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", slot, file);
    const ssize_t n = readlink(path, to, sizeof to - 1);
    if (n < 0)
        return false;
    to[n] = '\0';
    const char *last = strrchr(to, '/');
    last = last ? last + 1 : to;
    if (strlen(last) >= room)
        return false;
    strcpy(out, last);
    return true;
}

static int bind_driver(const char *slot, const char *driver)
{
    char path[128], now[64];
    if (read_link(slot, "driver", now, sizeof now) && strcmp(now, driver) == 0)
        return 0;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/driver/unbind", slot);
    (void)write_text(path, slot);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/driver_override", slot);
    if (!write_text(path, driver))
        return failed(slot, "there is no such card, or its driver cannot be chosen, which takes root");
    if (!write_text("/sys/bus/pci/drivers_probe", slot))
        return failed(slot, "its driver cannot be changed");
    if (read_link(slot, "driver", now, sizeof now) && strcmp(now, driver) == 0)
        return 0;
    errno = ENODEV;
    return rnl_fail(RNL_ERR_SYSTEM,
                    "card %s cannot be taken: the driver %s does not take it; load it first (modprobe %s)", slot,
                    driver, driver);
}

/* Lets the card reach memory, or not. Its interrupts stay off, but for vfio's: through uio whoever sleeps arms them. */
static bool set_command_word(const struct rnl_i8255x_grant *g, bool master)
{
    uint16_t c;
    const off_t at = (off_t)(g->config_at + RNL_I8255X_COMMAND_WORD);
    if (pread(g->config, &c, sizeof c, at) != sizeof c)
        return false;
    c = (uint16_t)((c & ~(BUS_MASTER | RNL_I8255X_NO_INTERRUPT)) | MEMORY_SPACE | (master ? BUS_MASTER : 0) |
                   (g->container >= 0 && master ? 0 : RNL_I8255X_NO_INTERRUPT));
    return pwrite(g->config, &c, sizeof c, at) == sizeof c;
}

/* Whoever drove the card before may have been killed while its units were at work, with addresses of memory that is
 * somebody else's by now. So they are stopped before the card reaches memory again. */
static bool let_reach_memory(const struct rnl_i8255x_grant *g)
{
    if (!set_command_word(g, false))
        return false;
    void *registers =
        mmap(NULL, RNL_I8255X_REGISTERS, PROT_READ | PROT_WRITE, MAP_SHARED, g->registers, (off_t)g->registers_at);
    if (registers == MAP_FAILED)
        return false;
    struct rnl_i8255x c = {.registers = registers};
    rnl_i8255x_reset(&c);
    (void)munmap(registers, RNL_I8255X_REGISTERS);
    return set_command_word(g, true);
}

/* ---- uio ---- */

static int open_uio_device(const char *slot)
{
    char path[280];
    int fd = -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/uio", slot);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && fd < 0 && (e = readdir(d));)
        if (strncmp(e->d_name, "uio", 3) == 0) {
            snprintf(path, sizeof path, "/dev/%s", e->d_name);
            fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        }
    if (d)
        closedir(d);
    return fd;
}

/* The physical address of a page of ours, 0 = we are not told. */
static uint64_t physical(const void *at)
{
    uint64_t entry = 0;
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pread(fd, &entry, sizeof entry, (off_t)((uintptr_t)at >> 12) * 8) != sizeof entry)
        entry = 0;
    if (fd >= 0)
        close(fd);
    return entry >> 63 ? (entry & ((UINT64_C(1) << 55) - 1)) << 12 : 0;
}

/* A huge page, which stays where it is: the card knows it by its physical address. */
static int make_uio_memory(const char *slot, struct rnl_i8255x_grant *g)
{
    g->memory = memfd_create("runnel-card", MFD_CLOEXEC | MFD_HUGETLB);
    if (g->memory < 0 || ftruncate(g->memory, RNL_I8255X_MEMORY) < 0)
        return failed(slot, "there is no huge page of 2 MiB for its memory: raise vm.nr_hugepages");
    void *at = mmap(NULL, RNL_I8255X_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, g->memory, 0);
    if (at == MAP_FAILED)
        return failed(slot, "there is no huge page of 2 MiB for its memory: raise vm.nr_hugepages");
    memset(at, 0, RNL_I8255X_MEMORY);
    g->bus = physical(at);
    (void)munmap(at, RNL_I8255X_MEMORY);
    if (g->bus != 0 && g->bus + RNL_I8255X_MEMORY <= UINT64_C(1) << 32)
        return 0;
    errno = g->bus ? ERANGE : EPERM;
    return failed(slot, "the physical address of its memory is not told, which takes CAP_SYS_ADMIN, or above 4 GiB");
}

static int take_uio(const char *slot, struct rnl_i8255x_grant *g)
{
    char path[128];
    int status = bind_driver(slot, "uio_pci_generic");
    if (status < 0)
        return status;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/config", slot);
    g->config = open(path, O_RDWR | O_CLOEXEC);
    if (g->config >= 0 && flock(g->config, LOCK_EX | LOCK_NB) < 0) {
        const int e = errno;
        close(g->config); /* and its command word stays as it is */
        g->config = -1;
        errno = e;
        return failed(slot, "another process has it");
    }
    /* Before the memory, see grant.h. Behind the lock, since closing it takes the bus from the card, whoever has it. */
    g->device = open_uio_device(slot);
    if (g->device < 0)
        return failed(slot, "its /dev/uio* cannot be opened");
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/resource0", slot);
    g->registers = open(path, O_RDWR | O_SYNC | O_CLOEXEC);
    if (g->config < 0 || g->registers < 0)
        return failed(slot, "its registers cannot be opened, which takes root");
    return make_uio_memory(slot, g);
}

/* ---- vfio ---- */

static int make_vfio_memory(const char *slot, struct rnl_i8255x_grant *g)
{
    g->memory = memfd_create("runnel-card", MFD_CLOEXEC);
    void *at = MAP_FAILED;
    if (g->memory >= 0 && ftruncate(g->memory, RNL_I8255X_MEMORY) == 0)
        at = mmap(NULL, RNL_I8255X_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, g->memory, 0);
    if (at == MAP_FAILED)
        return failed(slot, "there is no memory for it");
    struct vfio_iommu_type1_dma_map map = {.argsz = sizeof map,
                                           .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
                                           .vaddr = (uintptr_t)at,
                                           .iova = iova,
                                           .size = RNL_I8255X_MEMORY};
    const int r = ioctl(g->container, VFIO_IOMMU_MAP_DMA, &map);
    const int e = errno;
    (void)munmap(at, RNL_I8255X_MEMORY); /* the pages stay pinned until the container is closed */
    errno = e;
    g->bus = iova;
    return r == 0 ? 0 : failed(slot, "its memory cannot be pinned: raise the limit (ulimit -l)");
}

static int take_vfio(const char *slot, struct rnl_i8255x_grant *g)
{
    char path[80], group[64];
    int status = bind_driver(slot, "vfio-pci");
    if (status < 0)
        return status;
    if (!read_link(slot, "iommu_group", group, sizeof group))
        return failed(slot, "this machine has no IOMMU that works: see intel_iommu=on, or take it through uio");
    snprintf(path, sizeof path, "/dev/vfio/%s", group);
    g->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
    g->group = g->container < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (g->group < 0)
        return failed(slot, "/dev/vfio cannot be opened: give this user the group's file there");
    if (ioctl(g->group, VFIO_GROUP_SET_CONTAINER, &g->container) < 0 ||
        ioctl(g->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) < 0 ||
        (g->device = ioctl(g->group, VFIO_GROUP_GET_DEVICE_FD, slot)) < 0)
        return failed(slot, "vfio does not hand it out: all devices of its group have to be vfio's");
    struct vfio_region_info bar = {.argsz = sizeof bar, .index = VFIO_PCI_BAR0_REGION_INDEX};
    struct vfio_region_info space = {.argsz = sizeof space, .index = VFIO_PCI_CONFIG_REGION_INDEX};
    if (ioctl(g->device, VFIO_DEVICE_GET_REGION_INFO, &bar) < 0 ||
        ioctl(g->device, VFIO_DEVICE_GET_REGION_INFO, &space) < 0)
        return failed(slot, "vfio does not describe its registers");
    g->registers = fcntl(g->device, F_DUPFD_CLOEXEC, 0);
    g->config = fcntl(g->device, F_DUPFD_CLOEXEC, 0);
    if (g->registers < 0 || g->config < 0)
        return failed(slot, "there is no free descriptor: raise their limit (ulimit -n)");
    g->registers_at = bar.offset;
    g->config_at = space.offset;
    return make_vfio_memory(slot, g);
}

/* ---- both ---- */

/* "0000:00:03.0", and nothing that could be another path. */
static bool is_slot(const char *slot)
{
    unsigned a, b, c, d;
    int n = 0;
    return strlen(slot) == 12 && sscanf(slot, "%4x:%2x:%2x.%1x%n", &a, &b, &c, &d, &n) == 4 && n == 12;
}

static bool is_of_family(const char *slot)
{
    char id[16] = "", path[128];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%.15s/device", slot);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, id, sizeof id - 1);
    if (fd >= 0)
        close(fd);
    return n >= 6 && (strncmp(id, "0x1209", 6) == 0 || strncmp(id, "0x1229", 6) == 0);
}

static bool has_driver(const char *driver)
{
    char path[80];
    snprintf(path, sizeof path, "/sys/bus/pci/drivers/%s", driver);
    return access(path, F_OK) == 0;
}

/* How a card is to be had; 0: the kernel uses it. Without a driver, by an IOMMU where there is one. */
static enum rnl_i8255x_way way_to(const char *slot)
{
    char driver[64], group[64];
    if (read_link(slot, "driver", driver, sizeof driver))
        return strcmp(driver, "vfio-pci") == 0          ? RNL_I8255X_VFIO
               : strcmp(driver, "uio_pci_generic") == 0 ? RNL_I8255X_UIO
                                                        : (enum rnl_i8255x_way)0;
    return read_link(slot, "iommu_group", group, sizeof group) && has_driver("vfio-pci") ? RNL_I8255X_VFIO
                                                                                         : RNL_I8255X_UIO;
}

int rnl_i8255x_find(char slot[RNL_I8255X_CARDS][RNL_I8255X_SLOT_BYTES], enum rnl_i8255x_way way[RNL_I8255X_CARDS])
{
    struct dirent **all = NULL;
    const int n = scandir("/sys/bus/pci/devices", &all, NULL, alphasort);
    int found = 0, busy = 0;
    for (int i = 0; i < n; i++) {
        const char *name = all[i]->d_name;
        const bool is_card = is_slot(name) && is_of_family(name);
        const enum rnl_i8255x_way w = is_card ? way_to(name) : (enum rnl_i8255x_way)0;
        busy += is_card && !w;
        if (w && found < RNL_I8255X_CARDS) {
            snprintf(slot[found], RNL_I8255X_SLOT_BYTES, "%.12s", name);
            way[found++] = w;
        }
        free(all[i]);
    }
    free(all);
    if (found > 0)
        return found;
    return busy ? rnl_fail(RNL_ERR_SYSTEM,
                           "the kernel uses all cards of the 8255x family here: unbind one from its driver, see "
                           "runnel-cards(7)")
                : rnl_fail(RNL_ERR_SYSTEM, "there is no card of the 8255x family (8086:1209, 8086:1229) here");
}

int rnl_i8255x_take(const char *slot, enum rnl_i8255x_way way, struct rnl_i8255x_grant *out)
{
    struct rnl_i8255x_grant g = {
        .device = -1, .registers = -1, .memory = -1, .line = -1, .config = -1, .container = -1, .group = -1};
    if (!is_slot(slot))
        return rnl_fail(RNL_ERR_ARG, "'%.40s' is no address of a card, which look like 0000:00:03.0 (lspci -D)", slot);
    if (!is_of_family(slot))
        return rnl_fail(RNL_ERR_ARG, "%s is no card of the 8255x family (8086:1209, 8086:1229)", slot);
    int status = way == RNL_I8255X_VFIO ? take_vfio(slot, &g) : take_uio(slot, &g);
    if (status == 0 && (g.line = fcntl(g.config, F_DUPFD_CLOEXEC, 0)) < 0)
        status = failed(slot, "there is no free descriptor: raise their limit (ulimit -n)");
    if (status == 0 && !let_reach_memory(&g))
        status = failed(slot, "its configuration space or its registers cannot be written");
    if (status < 0)
        rnl_i8255x_give_back(&g);
    else
        *out = g;
    return status;
}

void rnl_i8255x_give_back(struct rnl_i8255x_grant *g)
{
    int *const fd[] = {&g->device, &g->registers, &g->line, &g->config, &g->memory, &g->group, &g->container};
    if (g->config >= 0)
        (void)set_command_word(g, false);
    for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++) {
        if (*fd[i] >= 0)
            close(*fd[i]);
        *fd[i] = -1;
    }
}

/* ---- the label ---- */

static void *map_memory(int memory)
{
    void *at = mmap(NULL, RNL_I8255X_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory, 0);
    return at == MAP_FAILED ? NULL : at;
}

int rnl_i8255x_label(struct rnl_i8255x_grant *g, uint32_t wire)
{
    char *at = map_memory(g->memory);
    if (!at)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the memory of a card cannot be mapped");
    g->wire = wire;
    const struct rnl_i8255x_label label = {
        .magic = RNL_I8255X_LABEL, .wire = wire, .bus = g->bus, .registers_at = g->registers_at};
    memcpy(at + RNL_I8255X_AT_LABEL, &label, sizeof label);
    (void)munmap(at, RNL_I8255X_MEMORY);
    return 0;
}

int rnl_i8255x_adopt(const int fd[RNL_I8255X_GRANT_FDS], struct rnl_i8255x_grant *out)
{
    const char *at = map_memory(fd[3]);
    struct rnl_i8255x_label label;
    if (!at)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the memory of a card cannot be mapped");
    memcpy(&label, at + RNL_I8255X_AT_LABEL, sizeof label);
    (void)munmap((void *)(uintptr_t)at, RNL_I8255X_MEMORY);
    if (label.magic != RNL_I8255X_LABEL || label.wire < 1 || label.wire > RNL_I8255X_CARDS)
        return rnl_fail(RNL_ERR_SYSTEM, "descriptors that were to be a card's are none of a card that was taken");
    *out = (struct rnl_i8255x_grant){.device = fd[0],
                                     .registers = fd[1],
                                     .line = fd[2],
                                     .memory = fd[3],
                                     .registers_at = label.registers_at,
                                     .bus = label.bus,
                                     .wire = label.wire,
                                     .config = -1,
                                     .container = -1,
                                     .group = -1};
    return 0;
}
