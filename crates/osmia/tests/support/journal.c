/* Stands in front of the system's calls and takes down, in order, everything that a process does to the files below the
 * directory in POWER_LOSS_BELOW, into the file in POWER_LOSS_JOURNAL. A sync has a line before and one behind it, because it
 * answers for what was written before it began.
 *
 * An entry: kind (one byte), two numbers of 8 bytes, the length of the text and of the data (4 bytes each), text, data.
 * Files are known by their numbers (inodes), names by their paths. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int journal = -1;
static const char *below;

#define REAL(result, name, parameters) \
    static result(*real) parameters; \
    if (!real) real = (result(*) parameters) dlsym(RTLD_NEXT, #name)

static void begin(void) {
    if (journal >= 0) return;
    below = getenv("POWER_LOSS_BELOW");
    const char *path = getenv("POWER_LOSS_JOURNAL");
    if (below && path)
        journal = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_below(const char *path) {
    begin();
    size_t length = below ? strlen(below) : 0;
    return journal >= 0 && path && !strncmp(path, below, length) && (path[length] == '/' || !path[length]);
}

/* The caller holds the lock, so that entries stand in the order of what they are about. */
static void note(char kind, uint64_t one, uint64_t two, const char *text, const void *data, size_t bytes) {
    uint32_t lengths[2] = {text ? strlen(text) : 0, bytes};
    char head[25];
    head[0] = kind;
    memcpy(head + 1, &one, 8);
    memcpy(head + 9, &two, 8);
    memcpy(head + 17, lengths, 8);
    struct iovec parts[3] = {{head, sizeof head}, {(void *)text, lengths[0]}, {(void *)data, bytes}};
    int saved = errno;
    syscall(SYS_writev, journal, parts, 3);
    errno = saved;
}

/* The path of an open file, if it is one of ours. */
static int path_of(int fd, char path[4096]) {
    char link[64];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, 4095);
    errno = saved;
    path[length > 0 ? length : 0] = 0;
    return is_below(path);
}

static uint64_t number_of(int fd) {
    struct stat status;
    int saved = errno;
    uint64_t number = fstat(fd, &status) ? 0 : status.st_ino;
    errno = saved;
    return number;
}

static void absolute(int directory, const char *path, char whole[4096]) {
    char base[4096] = "";
    if (path[0] != '/' && directory != AT_FDCWD) path_of(directory, base);
    else if (path[0] != '/' && !getcwd(base, sizeof base)) base[0] = 0;
    snprintf(whole, 4096, "%s%s%s", base, base[0] ? "/" : "", path);
}

static int opened(int fd, int directory, const char *path, int flags) {
    char whole[4096];
    absolute(directory, path, whole);
    struct stat status;
    if (fd >= 0 && is_below(whole) && (flags & (O_CREAT | O_TRUNC)) && !fstat(fd, &status) && S_ISREG(status.st_mode))
        note('o', status.st_ino, (flags & O_TRUNC) != 0, whole, NULL, 0);
    return fd;
}

#define OPENS(name, parameters, last, directory, call) \
    int name parameters { \
        va_list list; \
        va_start(list, last); \
        mode_t mode = va_arg(list, mode_t); \
        va_end(list); \
        pthread_mutex_lock(&lock); \
        int fd = opened(syscall(SYS_openat, directory, path, flags | O_LARGEFILE, mode), directory, path, flags); \
        pthread_mutex_unlock(&lock); \
        return fd; \
    }
OPENS(open, (const char *path, int flags, ...), flags, AT_FDCWD, 0)
OPENS(open64, (const char *path, int flags, ...), flags, AT_FDCWD, 0)
OPENS(openat, (int directory, const char *path, int flags, ...), flags, directory, 0)
OPENS(openat64, (int directory, const char *path, int flags, ...), flags, directory, 0)

static void wrote(int fd, const char *data, ssize_t written, off64_t at) {
    int flags = fcntl(fd, F_GETFL);
    note('w', number_of(fd), at, NULL, data, written);
    if (flags >= 0 && (flags & O_DSYNC)) {
        note('s', number_of(fd), 0, NULL, NULL, 0);
        note('S', number_of(fd), 0, NULL, NULL, 0);
    }
}

static ssize_t write_parts(int fd, const struct iovec *parts, int count, off64_t at, int has_place) {
    char path[4096];
    pthread_mutex_lock(&lock);
    int is_ours = path_of(fd, path);
    ssize_t written = has_place ? syscall(SYS_pwritev, fd, parts, count, (long)at, 0L) : syscall(SYS_writev, fd, parts, count);
    if (is_ours && written > 0) {
        if (!has_place) at = lseek64(fd, 0, SEEK_CUR) - written;
        ssize_t left = written;
        for (int part = 0; part < count && left > 0; part++) {
            ssize_t bytes = left < (ssize_t)parts[part].iov_len ? left : (ssize_t)parts[part].iov_len;
            wrote(fd, parts[part].iov_base, bytes, at);
            at += bytes;
            left -= bytes;
        }
    }
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t write(int fd, const void *data, size_t length) {
    struct iovec part = {(void *)data, length};
    return write_parts(fd, &part, 1, 0, 0);
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t at) {
    struct iovec part = {(void *)data, length};
    return write_parts(fd, &part, 1, at, 1);
}
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) { return pwrite(fd, data, length, at); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return write_parts(fd, parts, count, 0, 0); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return write_parts(fd, parts, count, at, 1); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { return write_parts(fd, parts, count, at, 1); }

static int resize(int fd, off64_t length, int result, int only_grows) {
    char path[4096];
    if (!result && path_of(fd, path)) note(only_grows ? 'g' : 't', number_of(fd), length, NULL, NULL, 0);
    return result;
}

#define RESIZES(name, parameters, call, length, only_grows) \
    int name parameters { \
        pthread_mutex_lock(&lock); \
        int result = resize(fd, length, call, only_grows); \
        pthread_mutex_unlock(&lock); \
        return result; \
    }
RESIZES(ftruncate, (int fd, off_t length), syscall(SYS_ftruncate, fd, length), length, 0)
RESIZES(ftruncate64, (int fd, off64_t length), syscall(SYS_ftruncate, fd, length), length, 0)
RESIZES(fallocate, (int fd, int mode, off_t at, off_t length), syscall(SYS_fallocate, fd, mode, at, length),
        mode & 1 ? 0 : at + length, 1)
RESIZES(fallocate64, (int fd, int mode, off64_t at, off64_t length), syscall(SYS_fallocate, fd, mode, at, length),
        mode & 1 ? 0 : at + length, 1)
RESIZES(posix_fallocate, (int fd, off_t at, off_t length), syscall(SYS_fallocate, fd, 0, at, length) ? errno : 0, at + length, 1)
RESIZES(posix_fallocate64, (int fd, off64_t at, off64_t length), syscall(SYS_fallocate, fd, 0, at, length) ? errno : 0,
        at + length, 1)

static int synced(int fd, int call) {
    char path[4096];
    struct stat status;
    int is_ours = path_of(fd, path) && !fstat(fd, &status), is_directory = is_ours && S_ISDIR(status.st_mode);
    uint64_t number = is_ours ? status.st_ino : 0;
    pthread_mutex_lock(&lock);
    if (is_ours) note(is_directory ? 'd' : 's', number, 0, is_directory ? path : NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    int result = syscall(call, fd);
    pthread_mutex_lock(&lock);
    if (is_ours && !result) note(is_directory ? 'D' : 'S', number, 0, is_directory ? path : NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

/* A name that comes, goes or moves. */
static int named(char kind, int directory, const char *path, int result) {
    char whole[4096];
    absolute(directory, path, whole);
    if (!result && is_below(whole)) note(kind, 0, 0, whole, NULL, 0);
    return result;
}
static int moved(int from_directory, const char *from, int to_directory, const char *to, int result) {
    char whole[4096], target[4096];
    absolute(from_directory, from, whole);
    absolute(to_directory, to, target);
    if (!result && is_below(whole)) note('r', 0, 0, whole, target, strlen(target));
    return result;
}

#define NAMES(name, parameters, noted) \
    int name parameters { \
        pthread_mutex_lock(&lock); \
        int result = noted; \
        pthread_mutex_unlock(&lock); \
        return result; \
    }
NAMES(mkdir, (const char *path, mode_t mode), named('m', AT_FDCWD, path, syscall(SYS_mkdirat, AT_FDCWD, path, mode)))
NAMES(mkdirat, (int at, const char *path, mode_t mode), named('m', at, path, syscall(SYS_mkdirat, at, path, mode)))
NAMES(unlink, (const char *path), named('u', AT_FDCWD, path, syscall(SYS_unlinkat, AT_FDCWD, path, 0)))
NAMES(unlinkat, (int at, const char *path, int flags), named('u', at, path, syscall(SYS_unlinkat, at, path, flags)))
NAMES(rmdir, (const char *path), named('u', AT_FDCWD, path, syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)))
NAMES(rename, (const char *from, const char *to),
      moved(AT_FDCWD, from, AT_FDCWD, to, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)))
NAMES(renameat, (int from_at, const char *from, int to_at, const char *to),
      moved(from_at, from, to_at, to, syscall(SYS_renameat2, from_at, from, to_at, to, 0)))
NAMES(renameat2, (int from_at, const char *from, int to_at, const char *to, unsigned flags),
      moved(from_at, from, to_at, to, syscall(SYS_renameat2, from_at, from, to_at, to, flags)))
