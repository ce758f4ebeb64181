package process

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/redact"
)

// processes are the control planes of a supervisor. It implements backend.ControlPlanes, whose methods the
// HostedControlPlane controller calls.
type processes struct {
	supervisor *supervisor.Supervisor
	// denied is the reason why no control plane is started, or empty.
	denied string

	mu sync.Mutex
	// hashes are the hashes of the configurations since the start of this program, by name.
	hashes map[string]string
}

// New returns the backend of the supervisor. The manager calls it at its start. No control planes are started if the
// data directory is temporary.
func New(s *supervisor.Supervisor, temporary bool) backend.Backend {
	p := &processes{supervisor: s, hashes: map[string]string{}}
	if temporary {
		p.denied = "The data of this manager is lost with its Pod (--temporary-data), and so would be that of the control plane: " +
			"start the manager with --control-plane-pods, as its release does, or use a KubeadmControlPlane"
	}
	return backend.Backend{ControlPlanes: p, Folder: s.Folder, Stop: p.stop}
}

func (p *processes) Capabilities(allowed policy.Configuration) backend.Capabilities {
	return backend.Capabilities{
		Kind: "hosted", Components: true, Addons: true, Versions: p.supervisor.Versions(), Denied: p.denied,
		Maximum: allowed.Maxima.ControlPlanes, Setting: "maxima.controlPlanes",
		RunningReason: "Running", RestartEffect: "a running process is adopted",
	}
}

// logBytes limits the log in the status, because users who can read the status may not be permitted to read
// Secrets.
const logBytes = 8 << 10

// exitBytes limits the exit message in the status.
const exitBytes = 1 << 10

// Status implements backend.ControlPlanes. It combines the state of the supervisor with the files in the directory of
// the control plane.
func (p *processes) Status(_ context.Context, name string) (backend.ControlPlane, error) {
	st, found, err := p.supervisor.Status(name)
	if err != nil || !found {
		return backend.ControlPlane{}, err
	}
	// The files of a restore are newer than the state of the supervisor.
	folder := p.supervisor.Folder(name)
	if st.Data.Staged, err = folder.ReadRestoreRequest(); err != nil {
		return backend.ControlPlane{}, err
	}
	if st.Data.Restored, err = folder.ReadRestored(); err != nil {
		return backend.ControlPlane{}, err
	}
	run, alive, err := folder.ReadRun()
	if err != nil {
		return backend.ControlPlane{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !st.Supervised { // a control plane that was transferred and returned must be started again
		delete(p.hashes, name)
	}
	only := ""
	if alive && run.Config == p.hashes[name] { // only valid for the current process, not for a previous one
		only = run.RunMode
	}
	// The observed state may be of the previous process. A process of an earlier release may not record its
	// configuration.
	current := p.hashes[name] == "" || alive && st.PID == run.PID && (run.Config == "" || run.Config == p.hashes[name])
	return backend.ControlPlane{
		Exists: true, RunMode: only, Config: p.hashes[name], Running: st.Running, Ready: st.Ready && current, EtcdReady: st.EtcdReady, PID: st.PID, Local: st.Local, Data: st.Data, Since: st.Since, Version: st.Version,
		Restarts: st.Restarts, LastExit: redact.Tail(st.LastExit, exitBytes), Log: redact.Tail(strings.Join(st.LastLog, "\n"), logBytes),
	}, nil
}

// Start implements backend.ControlPlanes. It leaves the files unchanged if the data is encrypted with other
// keys.
func (p *processes) Start(ctx context.Context, name string, cfg processconfig.Config, files map[string][]byte) error {
	release, err := p.supervisor.BlockTransfer(name)
	if err != nil {
		return err
	}
	defer release()
	data, err := p.supervisor.Folder(name).ReadData()
	if err != nil {
		return err
	}
	if err := data.KeysProblem(cfg.EncryptionKeys, cfg.EncryptionMark); err != nil {
		return err
	}
	for file, content := range files {
		if err := p.write(filepath.Join(p.supervisor.Folder(name).PKI(), file), content); err != nil {
			return fmt.Errorf("writing %s of control plane %s: %w", file, name, err)
		}
	}
	if _, err := p.supervisor.Ensure(ctx, name, cfg); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hashes[name] = cfg.Hash()
	return nil
}

// write writes a file for the process of a control plane. The file is owned by the user of the process, if
// that is a separate one.
func (p *processes) write(path string, content []byte) error {
	if user, own := uidisolation.UserOfFolder(filepath.Dir(path)); own {
		_, err := datadir.WriteFileFor(user, path, content, 0o600)
		return err
	}
	_, err := datadir.WriteFile(path, content, 0o600)
	return err
}

// stop stops the process of a control plane until Start is called again.
func (p *processes) stop(ctx context.Context, name string) error {
	release, err := p.supervisor.BlockTransfer(name)
	if err != nil {
		return err
	}
	defer release()
	if err := p.supervisor.Stop(ctx, name); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.hashes, name)
	return nil
}

func (p *processes) Remove(ctx context.Context, name string) error {
	p.mu.Lock()
	delete(p.hashes, name)
	p.mu.Unlock()
	return p.supervisor.Remove(ctx, name)
}

func (p *processes) Count(_ context.Context, namespace string) (own, all int, err error) {
	list, err := p.supervisor.List()
	for _, st := range list {
		if strings.HasPrefix(st.Name, namespace+".") {
			own++
		}
	}
	return own, len(list), err
}

func (p *processes) Subscribe(changed func(name string)) (cancel func()) {
	return p.supervisor.Subscribe(changed)
}
