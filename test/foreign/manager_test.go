package foreign

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// managerProcess is `slipway manager` with the manager's rights alone.
type managerProcess struct {
	binary, log string
	args        []string
	cmd         *exec.Cmd
}

// connectionGrace is how long a workload cluster may not answer before its Cluster says so.
const connectionGrace = 15 * time.Second

func (w *world) newManager() *managerProcess {
	w.Helper()
	binary, err := apiserver.Binary()
	w.must(err)
	cfg, err := clientcmd.LoadFromFile(w.server.Kubeconfig)
	w.must(err)
	for _, user := range cfg.AuthInfos {
		user.Impersonate = rbac.User
	}
	kubeconfig := filepath.Join(w.TempDir(), "kubeconfig")
	w.must(clientcmd.WriteToFile(*cfg, kubeconfig))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	w.must(err)
	w.must(listener.Close())
	return &managerProcess{binary: binary, log: filepath.Join(w.TempDir(), "log"), args: []string{
		"manager", "--kubeconfig", kubeconfig, "--data-dir", w.TempDir(), "--health-addr", "0", "--diagnostics-address", "0",
		"--webhook-host", "127.0.0.1", "--webhook-port", port, "--remote-connection-grace-period", connectionGrace.String(),
	}}
}

func (m *managerProcess) start(w *world) {
	w.Helper()
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	w.must(err)
	defer log.Close() //nolint:errcheck // the process has it
	m.cmd = exec.Command(m.binary, m.args...)
	m.cmd.Stderr, m.cmd.SysProcAttr = log, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	w.must(m.cmd.Start())
}

func (m *managerProcess) stop(w *world) {
	kill := time.AfterFunc(patience, func() { _ = m.cmd.Process.Kill() })
	defer kill.Stop()
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	err := m.cmd.Wait()
	text, _ := os.ReadFile(m.log)
	if strings.Contains(string(text), "panic") {
		w.Error("Slipway panicked")
	}
	if stopped := m.cmd.ProcessState.ExitCode() == 130; err != nil && !stopped || w.Failed() {
		w.Logf("the manager exited: %v\n%s", err, text[max(0, len(text)-32<<10):])
	}
}
