package uidisolation_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// actionVariable makes this test program a control plane that was taken over: it becomes the user, and does what a test says.
const actionVariable, userVariable = "OWNUSER_TEST_ACTION", "OWNUSER_TEST_USER"

// actions are what such a process does, by name, with arguments.
var actions = map[string]func(args []string) error{
	"read":  func(args []string) error { _, err := os.ReadFile(args[0]); return err },
	"write": func(args []string) error { return os.WriteFile(args[0], []byte("mine"), 0o600) },
	"replace": func(args []string) error {
		return errors.Join(os.WriteFile("new", []byte("mine"), 0o600), os.Rename("new", args[0]))
	},
	"remove":  func(args []string) error { return os.Remove(args[0]) },
	"rename":  func(args []string) error { return os.Rename(args[0], args[1]) },
	"symlink": func(args []string) error { return os.Symlink(args[0], args[1]) },
	"list":    func(args []string) error { _, err := os.ReadDir(args[0]); return err },
	"root":    func([]string) error { return syscall.Setresuid(0, 0, 0) },
	"chown":   func(args []string) error { return os.Chown(args[0], 0, 0) },
	"signal": func(args []string) error {
		pid, err := strconv.Atoi(args[0])
		return errors.Join(err, syscall.Kill(pid, 0))
	},
	"execute": func(args []string) error { return exec.Command(args[0]).Run() },
	"multiply": func([]string) error { // a process that starts others, which outlive it and do not end by themselves
		for range 3 {
			cmd := exec.Command("/bin/sh", "-c", "trap '' TERM; while :; do sleep 1000 & sleep 1000; done")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				return err
			}
		}
		fmt.Println("started")
		_, _ = io.ReadAll(os.Stdin)
		return nil
	},
}

func TestMain(m *testing.M) {
	name := os.Getenv(actionVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := act(name, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// act becomes the user, in a process of which no thread gains rights by executing a file, and acts.
func act(name string, args []string) error {
	noNewPrivs, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return err
	}
	if noNewPrivs == 0 {
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	user, err := strconv.Atoi(os.Getenv(userVariable))
	if err != nil {
		return err
	}
	program := ""
	if name == "execute" {
		if program, err = uidisolation.Executable(args[0]); err != nil {
			return err
		}
		args = []string{program}
	}
	if err := uidisolation.SwitchUser(user); err != nil {
		return fmt.Errorf("become: %w", err)
	}
	return actions[name](args)
}

// as is a process of the user that does something in the folder.
func as(folder string, user int, action string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), actionVariable+"="+action, userVariable+"="+strconv.Itoa(user))
	return cmd
}

// possible reports whether users can be given here; where they cannot, because the tests do not run as root, it checks that this is said.
func possible(t *testing.T) bool {
	t.Helper()
	err := uidisolation.Unavailable(t.TempDir())
	if os.Geteuid() != 0 && !errors.Is(err, uidisolation.ErrNotRoot) {
		t.Errorf("not root: %v", err)
	}
	if os.Geteuid() == 0 && err != nil {
		t.Errorf("root: %v", err)
	}
	return err == nil
}

// plane makes the folder of a control plane, as a manager leaves it for the first start.
func plane(t *testing.T, root, name string) string {
	t.Helper()
	folder := filepath.Join(root, name)
	for _, file := range []string{
		"config.json", "supervision.json", "supervisor.lock", "keeper", "lock", "run.json", "pki/ca.key", "log/control-plane.log", "etcd/member/wal/0.wal",
	} {
		put(t, filepath.Join(folder, file))
	}
	return folder
}

func put(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func assign(t *testing.T, folder string) int {
	t.Helper()
	user, err := uidisolation.Assign(folder)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func give(t *testing.T, folder string, user int) {
	t.Helper()
	if err := uidisolation.ChownFolder(folder, user); err != nil {
		t.Fatal(err)
	}
}

// owner says whose a file is: "root", or "user" for the one of the control plane, and which mode it has.
func owner(t *testing.T, path string, user int) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "missing"
	}
	name := func(id uint32) string {
		return map[int]string{0: "root", user: "user"}[int(id)]
	}
	return fmt.Sprintf("%s:%s %o", name(st.Uid), name(st.Gid), st.Mode&0o7777)
}

func owners(t *testing.T, folder string, user int) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(folder, path)
		out[rel] = owner(t, path, user)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The number is recorded before anything runs as it, survives, moves with the folder, and is no other folder's.
func TestAssign(t *testing.T) {
	if !possible(t) {
		return
	}
	root := t.TempDir()
	a, b := plane(t, root, "a"), plane(t, root, "b")
	first, second := assign(t, a), assign(t, b)
	if first == second || !uidisolation.IsControlPlaneUser(first) || !uidisolation.IsControlPlaneUser(second) {
		t.Errorf("users %d and %d", first, second)
	}
	if _, found := uidisolation.UserOfFolder(root); found {
		t.Error("the folder of all control planes has a user")
	}
	moved := filepath.Join(t.TempDir(), "a")
	if err := os.Rename(a, moved); err != nil {
		t.Fatal(err)
	}
	if again := assign(t, moved); again != first {
		t.Errorf("after its move it is user %d, and was %d", again, first)
	}
	if _, found := uidisolation.UserOfFolder(a); found {
		t.Error("a folder that is gone has a user")
	}
	if err := os.Symlink(moved, a); err != nil {
		t.Fatal(err)
	}
	if _, found := uidisolation.UserOfFolder(a); found {
		t.Error("a link has a user")
	}
}

// What ran as root before is given, what the manager alone writes is not, and a second call changes nothing.
func TestGive(t *testing.T) {
	if !possible(t) {
		return
	}
	folder := plane(t, t.TempDir(), "a")
	put(t, filepath.Join(folder, "restore", "snapshot.db")) // being fetched
	user := assign(t, folder)
	want := map[string]string{
		".": "root:user 1770", "config.json": "root:root 600", "supervision.json": "root:root 600", "supervisor.lock": "root:root 600", "keeper": "root:root 600",
		"lock": "user:user 600", "run.json": "user:user 600", "pki": "root:user 1770", "pki/ca.key": "user:user 600", "log": "root:user 1770",
		"log/control-plane.log": "user:user 600", "etcd": "user:user 700", "etcd/member": "user:user 700", "etcd/member/wal": "user:user 700",
		"etcd/member/wal/0.wal": "user:user 600", "restore": "root:root 700", "restore/snapshot.db": "root:root 600",
	}
	for range 2 {
		give(t, folder, user)
		if diff := cmp.Diff(want, owners(t, folder, user)); diff != "" {
			t.Errorf("owners (-want +got):\n%s", diff)
		}
	}
	put(t, filepath.Join(folder, "restore", "request.json")) // complete
	put(t, filepath.Join(folder, "etcd", "of-an-older-slipway"))
	give(t, folder, user)
	for file, mode := range map[string]string{"restore": "700", "restore/snapshot.db": "600", "restore/request.json": "600", "etcd/of-an-older-slipway": "600"} {
		want[file] = "user:user " + mode
	}
	if diff := cmp.Diff(want, owners(t, folder, user)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

// Killed in between, the next call continues.
func TestGiveInterrupted(t *testing.T) {
	if !possible(t) {
		return
	}
	folder := plane(t, t.TempDir(), "a")
	user := assign(t, folder)
	if err := os.Chown(filepath.Join(folder, "etcd", "member"), user, user); err != nil {
		t.Fatal(err)
	}
	give(t, folder, user)
	if got := owner(t, filepath.Join(folder, "etcd", "member", "wal", "0.wal"), user); got != "user:user 600" {
		t.Errorf("got %s", got)
	}
}

// A control plane that was taken over plants links, pipes and names of files of root in all of its folders.
func TestGiveFollowsNothing(t *testing.T) {
	if !possible(t) {
		return
	}
	root := t.TempDir()
	folder, outside := plane(t, root, "a"), filepath.Join(root, "outside")
	put(t, filepath.Join(outside, "key"))
	user := assign(t, folder)
	give(t, folder, user)
	for _, dir := range []string{"", "pki", "log", "etcd", "etcd/member"} {
		for _, err := range []error{
			os.Symlink(filepath.Join(outside, "key"), filepath.Join(folder, dir, "link")),
			os.Symlink(outside, filepath.Join(folder, dir, "folder")),
			unix.Mkfifo(filepath.Join(folder, dir, "pipe"), 0o600),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	give(t, folder, user)
	if got := owner(t, filepath.Join(outside, "key"), user) + ", " + owner(t, outside, user); got != "root:root 600, root:root 700" {
		t.Errorf("outside: %s", got)
	}
	if err := os.Link(filepath.Join(outside, "key"), filepath.Join(folder, "etcd", "name")); err != nil {
		t.Fatal(err)
	}
	if err := uidisolation.ChownFolder(folder, user); err == nil || !strings.Contains(err.Error(), "name is a file of user 0 that has other names") {
		t.Errorf("another name of a file of root: %v", err)
	}
	if got := owner(t, filepath.Join(outside, "key"), user); got != "root:root 600" {
		t.Errorf("outside, by another name: %s", got)
	}
	for _, name := range []string{"log", "pki"} { // removed by a person while it ran
		if err := errors.Join(os.RemoveAll(filepath.Join(folder, name)), os.Symlink(outside, filepath.Join(folder, name))); err != nil {
			t.Fatal(err)
		}
		if err := uidisolation.ChownFolder(folder, user); err == nil {
			t.Errorf("%s is a link, and no error", name)
		}
	}
	if got := owner(t, outside, user); got != "root:root 700" {
		t.Errorf("outside, by a folder: %s", got)
	}
}

// What a control plane that was taken over can do to files and processes, and what it cannot.
func TestWhatTheUserMayDo(t *testing.T) {
	if !possible(t) {
		return
	}
	root := t.TempDir()
	a, b := plane(t, root, "a"), plane(t, root, "b")
	user, other := assign(t, a), assign(t, b)
	give(t, a, user)
	give(t, b, other)
	if err := uidisolation.Unavailable(root); err != nil { // closes it
		t.Fatal(err)
	}
	put(t, filepath.Join(root, "management.key"))
	program := filepath.Join(root, "versions", "program")
	put(t, program)
	if err := errors.Join(os.WriteFile(program, mustRead(t, "/bin/true"), 0o500), os.Chmod(program, 0o500)); err != nil {
		t.Fatal(err)
	}
	otherFD, err := os.Open(b) // as if it found a way along the closed folders above
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = otherFD.Close() }()
	for _, test := range []struct {
		may    bool
		action []string
	}{
		{true, []string{"read", "pki/ca.key"}},
		{true, []string{"write", "pki/apiserver.crt"}},
		{true, []string{"replace", "run.json"}},
		{true, []string{"replace", "pki/ca.key"}},
		{true, []string{"rename", "etcd", "etcd-before-1"}},
		{true, []string{"rename", "log/control-plane.log", "log/control-plane.log.1"}},
		{true, []string{"execute", program}},
		{false, []string{"read", "config.json"}},
		{false, []string{"replace", "config.json"}},
		{false, []string{"replace", "keeper"}},
		{false, []string{"remove", "supervision.json"}},
		{false, []string{"rename", "supervisor.lock", "x"}},
		{false, []string{"rename", "pki", "x"}},
		{false, []string{"rename", "log", "x"}},
		{false, []string{"write", "../x"}},
		{false, []string{"list", ".."}},
		{false, []string{"read", "../management.key"}},
		{false, []string{"read", "../b/pki/ca.key"}},
		{false, []string{"list", "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(int(otherFD.Fd()))}},
		{false, []string{"read", "/proc/" + strconv.Itoa(os.Getpid()) + "/environ"}},
		{false, []string{"read", "/proc/" + strconv.Itoa(os.Getpid()) + "/mem"}},
		{false, []string{"signal", strconv.Itoa(os.Getpid())}},
		{false, []string{"root"}},
		{false, []string{"chown", "run.json"}},
	} {
		cmd := as(a, user, test.action[0], test.action[1:]...)
		out, err := cmd.CombinedOutput()
		if (err == nil) != test.may || strings.Contains(string(out), "become:") {
			t.Errorf("%v: may %v, got %v: %s", test.action, test.may, err, out)
		}
		if !test.may && !strings.Contains(string(out), "permission denied") && !strings.Contains(string(out), "not permitted") {
			t.Errorf("%v fails for another reason: %s", test.action, out)
		}
	}
	cmd := as(b, other, "read", "pki/ca.key") // not the folder of a, but of its own
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the other one: %v: %s", err, out)
	}
	cmd = as(b, user, "list", ".") // in the folder of b, as the user of a
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "permission denied") {
		t.Errorf("the folder of another one: %v: %s", err, out)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestBecomeIsForThoseUsersOnly(t *testing.T) {
	for _, user := range []int{0, 1000, uidisolation.FirstID - 1, uidisolation.FirstID + uidisolation.IDCount} {
		if err := uidisolation.SwitchUser(user); err == nil {
			t.Fatalf("became %d", user)
		}
		if err := uidisolation.Kill(t.Context(), user); err == nil {
			t.Fatalf("killed what user %d runs", user)
		}
	}
}

// Everything that runs as the user ends, what its process left behind too, and nothing else does.
func TestKill(t *testing.T) {
	if !possible(t) {
		return
	}
	root := t.TempDir()
	a, b := plane(t, root, "a"), plane(t, root, "b")
	started := map[int]*exec.Cmd{}
	for _, folder := range []string{a, b} {
		user := assign(t, folder)
		give(t, folder, user)
		cmd := as(folder, user, "multiply")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = in.Close() }()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = uidisolation.Kill(t.Context(), user) })
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "started\n" {
			t.Fatalf("%q, %v", line, err)
		}
		started[user] = cmd
	}
	first, second := assign(t, a), assign(t, b)
	if err := uidisolation.Kill(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := started[first].Wait(); err == nil {
		t.Error("it ended by itself")
	}
	if n := count(t, first); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if n := count(t, second); n < 4 { // itself, and three with what they started
		t.Errorf("the other one has %d processes", n)
	}
	if is, err := uidisolation.UserOf(started[second].Process.Pid); err != nil || is != second {
		t.Errorf("the other one is user %d, %v", is, err)
	}
	if err := uidisolation.Kill(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	_ = started[second].Wait()
}

// count counts the processes of a user that have not ended.
func count(t *testing.T, user int) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, _ := os.ReadFile(path)
		if strings.Contains(string(text), fmt.Sprintf("\nUid:\t%d\t", user)) && !strings.Contains(string(text), "\nState:\tZ") {
			n++
		}
	}
	return n
}
