package process_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	controlplaneetcd "github.com/slipwayhq/slipway/internal/controlplane/etcd"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/hosted/process"
	kubeadmetcd "github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// version is that of the build under test.
const version = "v1.36.3"

// live is the backend with real control planes.
type live struct {
	*testing.T
	planes backend.ControlPlanes
	close  func()
	root   string
	files  map[string][]byte
}

// newLive returns a backend whose folders only root gets at, as those of a data directory in the home of root. own gives users.
func newLive(t *testing.T, root string, own bool) *live {
	t.Helper()
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	s := supervisor.New(t.Context(), supervisor.Config{
		Root: root, Command: []string{binary, "control-plane", "run", "--config"}, Versions: func() []string { return []string{version} },
		Now: time.Now, SeparateUsers: own,
	})
	t.Cleanup(s.Close)
	return &live{T: t, planes: process.New(s, false).ControlPlanes, close: s.Close, root: root, files: authorities(t)}
}

// authorities are the files that a control plane gets.
func authorities(t *testing.T) map[string][]byte {
	t.Helper()
	folder := pki.Folder{Path: t.TempDir(), Now: time.Now}
	for _, name := range []string{processconfig.CA, processconfig.EtcdCA, processconfig.ProxyCA} {
		if _, err := folder.Authority(name, pki.Authority{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.SigningKey(processconfig.SigningSA, ""); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	entries, err := os.ReadDir(folder.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(folder.Path, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func (l *live) folder(name string) processconfig.Folder {
	return processconfig.Folder(filepath.Join(l.root, name))
}

// start starts a control plane at a port that only root may open, or restarts it with another certificate lifetime, and returns when it is ready.
func (l *live) start(name, address string, days int) backend.ControlPlane {
	l.Helper()
	cfg := processconfig.Config{
		Cluster: name, Version: version, Endpoint: address + ":443", ServiceCIDRs: []string{"10.1.0.0/16"}, PodCIDRs: []string{"10.2.0.0/16"},
		CertificateDays: days, Security: hostedv1.Security{Audit: &hostedv1.Audit{}},
	}
	if err := l.planes.Start(l.Context(), name, cfg, l.files); err != nil {
		l.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		st, err := l.planes.Status(l.Context(), name)
		if err != nil {
			l.Fatal(err)
		}
		run, alive, err := l.folder(name).ReadRun()
		if err == nil && st.Ready && st.Config == cfg.Hash() && run.Config != cfg.Hash() {
			l.Fatalf("it is ready, and what answers is the process of before: %+v", st)
		}
		if err == nil && alive && st.Ready && st.PID == run.PID && run.Config == cfg.Hash() {
			return st
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(l.folder(name).Log())
			l.Fatalf("it does not get ready: %+v, %v\n%s", st, err, log[max(0, len(log)-4<<10):])
		}
	}
}

// user is the user of the control plane, which all of its processes and files have.
func (l *live) user(name string, pid int) int {
	l.Helper()
	user, own := uidisolation.UserOfFolder(string(l.folder(name)))
	if !own {
		l.Fatalf("control plane %s has no user of its own", name)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		l.Fatal(err)
	}
	for _, line := range []string{
		fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", user), fmt.Sprintf("Gid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", user), "NoNewPrivs:\t1\n",
		"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapAmb:\t0000000000000000\n",
	} {
		if !strings.Contains(string(status), line) {
			l.Errorf("its process has not %q:\n%s", line, status)
		}
	}
	if groups := strings.Split(string(status), "Groups:")[1]; strings.TrimSpace(strings.Split(groups, "\n")[0]) != "" {
		l.Errorf("its process is in groups %s", groups)
	}
	return user
}

// isGiven checks whose files those in the folder are.
func (l *live) isGiven(name string, user int) {
	l.Helper()
	ofRoot := []string{".", "config.json", "pki", "log"}
	folder := string(l.folder(name))
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err := errors.Join(err, unix.Lstat(path, &st)); err != nil {
			return err
		}
		rel, _ := filepath.Rel(folder, path)
		want := user
		for _, is := range ofRoot {
			if is == rel {
				want = 0
			}
		}
		if int(st.Uid) != want {
			l.Errorf("%s belongs to %d, want %d", rel, st.Uid, want)
		}
		if !d.IsDir() && d.Type().IsRegular() && st.Mode&0o007 != 0 && !strings.HasSuffix(rel, ".crt") && !strings.HasSuffix(rel, ".pub") {
			l.Errorf("%s has mode %o", rel, st.Mode&0o777)
		}
		return nil
	})
	if err != nil {
		l.Fatal(err)
	}
}

// revision is that of etcd, read by its socket from a process that listens as the user.
func (l *live) revision(name string, user int) (int64, error) {
	socket, err := controlplaneetcd.ClientSocket(l.folder(name).Etcd())
	if err != nil {
		return 0, err
	}
	c, err := kubeadmetcd.ConnectToSocket(socket, user)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(l.Context(), 5*time.Second)
	defer cancel()
	revision, _, err := c.State(ctx)
	return revision, err
}

// A real control plane that ran as root runs as a user of its own from its next start, with its data, opens a port that only root may, and is
// restarted and removed; another one has another user. Where the tests are not run as root there are no users, and nothing else to see.
func TestControlPlanesHaveUsersOfTheirOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		if err := uidisolation.Unavailable(t.TempDir()); !errors.Is(err, uidisolation.ErrNotRoot) {
			t.Errorf("not root: %v", err)
		}
		return
	}
	root := filepath.Join(closedFolder(t), strings.Repeat("long", 25)) // too long for sockets, which are in the folder of all then
	t.Cleanup(func() {
		if err := supervisor.StopAll(context.Background(), root); err != nil {
			t.Error(err)
		}
	})

	asRoot := newLive(t, root, false)
	before := asRoot.start("ns.a", "198.51.100.77", 30)
	if is, err := uidisolation.UserOf(before.PID); err != nil || is != 0 {
		t.Errorf("without own users it is user %d, %v", is, err)
	}
	was, err := asRoot.revision("ns.a", 0)
	if err != nil {
		t.Fatal(err)
	}

	asRoot.close()
	l := newLive(t, root, true)
	l.files = asRoot.files
	a := l.start("ns.a", "198.51.100.77", 31)
	user := l.user("ns.a", a.PID)
	l.isGiven("ns.a", user)
	if now, err := l.revision("ns.a", user); err != nil || now < was {
		t.Errorf("its data is at revision %d, and was at %d: %v", now, was, err)
	}
	if audit, err := os.ReadFile(l.folder("ns.a").AuditLog()); err != nil || len(audit) == 0 {
		t.Errorf("audit: %d bytes, %v", len(audit), err)
	}
	again := l.start("ns.a", "198.51.100.77", 32)
	if is := l.user("ns.a", again.PID); is != user || again.PID == a.PID {
		t.Errorf("restarted as user %d, was %d", is, user)
	}
	l.isGiven("ns.a", user)

	b := l.start("ns.b", "198.51.100.78", 30)
	if is := l.user("ns.b", b.PID); is == user {
		t.Errorf("both are user %d", user)
	}
	answers(t, again.Local)
	answers(t, b.Local)
	l.leadsElsewhere("ns.a", user, "ns.b")
	for _, name := range []string{"ns.a", "ns.b"} {
		if err := l.planes.Remove(t.Context(), name); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(string(l.folder(name))); !os.IsNotExist(err) {
			t.Errorf("the folder of %s: %v", name, err)
		}
	}
}

// closedFolder is a folder that only root gets at, as the home of root is. Temporary files are in one of all users.
func closedFolder(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "root-") // mode 0700
	if err != nil {
		t.Fatal(err)
	}
	temporary, err := os.MkdirTemp("", "all-")
	if err := errors.Join(err, os.Chmod(temporary, 0o777|fs.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(os.RemoveAll(home), os.RemoveAll(temporary)) })
	t.Setenv("TMPDIR", temporary)
	return home
}

// leadsElsewhere makes the socket of a control plane lead to that of another one: it is not connected to.
func (l *live) leadsElsewhere(name string, user int, other string) {
	l.Helper()
	var sockets [2]string
	for i, of := range []string{name, other} {
		var err error
		if sockets[i], err = controlplaneetcd.ClientSocket(l.folder(of).Etcd()); err != nil {
			l.Fatal(err)
		}
	}
	if err := errors.Join(os.Remove(sockets[0]), os.Symlink(sockets[1], sockets[0])); err != nil {
		l.Fatal(err)
	}
	if _, err := l.revision(name, user); err == nil {
		l.Errorf("etcd of %s is read as that of %s", other, name)
	}
}

// answers checks that an API server listens.
func answers(t *testing.T, address string) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is not trusted with anything
	if err != nil {
		t.Errorf("%s: %v", address, err)
		return
	}
	_ = conn.Close()
}
