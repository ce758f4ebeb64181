// Package process is the backend whose control planes are one process each on this host.
//
// Does: is a backend over the supervisor of package plane/process: puts the files of authorities and keys where the process
// reads them, starts it, and returns what the supervisor knows of it.
//
// Owns: the PKI folders of control planes, and which configuration was last asked for.
//
// Never: restarts a process that died (the supervisor), or decides what one is told.
//
// Read first: [New].
package process

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
	supervisor "github.com/slipwayhq/slipway/internal/plane/process"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/hosted/backend"
	"github.com/slipwayhq/slipway/internal/redact"
)

// processes are the control planes that a supervisor keeps.
type processes struct {
	supervisor *supervisor.Supervisor
	// denied is why none is started; empty: they are.
	denied string

	mu sync.Mutex
	// hashes are the configurations that were asked for since this program started, by name.
	hashes map[string]string
}

// New returns the backend of the supervisor. What is started lives where the supervisor keeps its data: where that does not last,
// temporary, none is started.
func New(s *supervisor.Supervisor, temporary bool) backend.Backend {
	p := &processes{supervisor: s, hashes: map[string]string{}}
	if temporary {
		p.denied = "The data of this manager is lost with its Pod (--temporary-data), and so would be that of the control plane: " +
			"start the manager with --control-plane-pods, as its release does, or use a KubeadmControlPlane"
	}
	return backend.Backend{ControlPlanes: p, Folder: s.Folder, Stop: p.stop}
}

// Terms implements backend.ControlPlanes.
func (p *processes) Terms(allowed policy.Configuration) backend.Terms {
	terms := Terms(allowed, p.supervisor.Versions())
	terms.Denied = p.denied
	return terms
}

// Terms says what is known of a control plane before its process is started, which can be of these versions.
func Terms(allowed policy.Configuration, versions []string) backend.Terms {
	return backend.Terms{
		Kind: "hosted", Components: true, Addons: true, Versions: versions, Maximum: allowed.Maxima.ControlPlanes, Setting: "maxima.controlPlanes",
		Running: "Running", Continued: "a process that lives is taken over",
	}
}

// logBytes is how much of the log of a control plane its status has at most: who may read that may not read Secrets.
const logBytes = 8 << 10

// exitBytes is how much of the reason that a control plane gives for its end the status has at most.
const exitBytes = 1 << 10

// Status implements backend.ControlPlanes.
func (p *processes) Status(_ context.Context, name string) (backend.ControlPlane, error) {
	st, found, err := p.supervisor.Status(name)
	if err != nil || !found {
		return backend.ControlPlane{}, err
	}
	// What a restore has written is newer than what the supervisor has seen.
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
	if !st.Supervised { // one that was handed over, and came back, is asked for again
		delete(p.hashes, name)
	}
	only := ""
	if alive && run.Config == p.hashes[name] { // of the process that lives now, and of no earlier one
		only = run.Only
	}
	// What was seen last may be the process of before. One of an earlier release may not say how it was started.
	current := p.hashes[name] == "" || alive && st.PID == run.PID && (run.Config == "" || run.Config == p.hashes[name])
	return backend.ControlPlane{
		Exists: true, Only: only, Config: p.hashes[name], Running: st.Running, Ready: st.Ready && current, EtcdReady: st.EtcdReady, PID: st.PID, Local: st.Local, Data: st.Data, Since: st.Since, Version: st.Version,
		Restarts: st.Restarts, LastExit: redact.Tail(st.LastExit, exitBytes), Log: redact.Tail(strings.Join(st.LastLog, "\n"), logBytes),
	}, nil
}

// Start implements backend.ControlPlanes. The files of a control plane whose data is encrypted with other keys are left as
// they are.
func (p *processes) Start(ctx context.Context, name string, cfg workload.Config, files map[string][]byte) error {
	release, err := p.supervisor.Claim(name)
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

// write writes a file for the process of a control plane: it belongs to the user of the process where that has one of its own.
func (p *processes) write(path string, content []byte) error {
	if user, own := ownuser.Of(filepath.Dir(path)); own {
		_, err := datadir.WriteFileFor(user, path, content, 0o600)
		return err
	}
	_, err := datadir.WriteFile(path, content, 0o600)
	return err
}

// stop ends the process of a control plane. What is running is asked for again afterwards.
func (p *processes) stop(ctx context.Context, name string) error {
	release, err := p.supervisor.Claim(name)
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

// Remove implements backend.ControlPlanes.
func (p *processes) Remove(ctx context.Context, name string) error {
	p.mu.Lock()
	delete(p.hashes, name)
	p.mu.Unlock()
	return p.supervisor.Remove(ctx, name)
}

// Count implements backend.ControlPlanes.
func (p *processes) Count(_ context.Context, namespace string) (own, all int, err error) {
	list, err := p.supervisor.List()
	for _, st := range list {
		if strings.HasPrefix(st.Name, namespace+".") {
			own++
		}
	}
	return own, len(list), err
}

// Subscribe implements backend.ControlPlanes.
func (p *processes) Subscribe(changed func(name string)) (cancel func()) {
	return p.supervisor.Subscribe(changed)
}
