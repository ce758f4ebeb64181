package hosted

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/process"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// Supervised is the Processes that a supervisor keeps.
type Supervised struct {
	supervisor *process.Supervisor

	mu sync.Mutex
	// hashes are the configurations that were asked for since this program started, by name.
	hashes map[string]string
}

// NewSupervised returns the processes of the supervisor.
func NewSupervised(s *process.Supervisor) *Supervised {
	return &Supervised{supervisor: s, hashes: map[string]string{}}
}

// Status implements Processes.
func (p *Supervised) Status(_ context.Context, name string) (Process, error) {
	st, found, err := p.supervisor.Status(name)
	if err != nil || !found {
		return Process{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return Process{
		Exists: true, Config: p.hashes[name], Running: st.Running, Ready: st.Ready, EtcdReady: st.EtcdReady, PID: st.PID, Local: st.Local, Data: st.Data, Since: st.Since, Version: st.Version,
		Restarts: st.Restarts, LastExit: st.LastExit, Log: strings.Join(st.LastLog, "\n"),
	}, nil
}

// Start implements Processes. The files of a control plane whose data is encrypted with other keys are left as they are.
func (p *Supervised) Start(ctx context.Context, name string, cfg workload.Config, files map[string][]byte) error {
	data, err := p.supervisor.Folder(name).ReadData()
	if err != nil {
		return err
	}
	if err := data.KeysProblem(cfg.EncryptionKeys); err != nil {
		return err
	}
	folder := p.supervisor.Folder(name).PKI()
	for file, content := range files {
		if _, err := datadir.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
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

// Remove implements Processes.
func (p *Supervised) Remove(ctx context.Context, name string) error {
	p.mu.Lock()
	delete(p.hashes, name)
	p.mu.Unlock()
	return p.supervisor.Remove(ctx, name)
}

// Count implements Processes.
func (p *Supervised) Count(_ context.Context, namespace string) (own, all int, err error) {
	list, err := p.supervisor.List()
	for _, st := range list {
		if strings.HasPrefix(st.Name, namespace+".") {
			own++
		}
	}
	return own, len(list), err
}

// Source implements Processes.
func (p *Supervised) Source(to func(name string) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		cancel := p.supervisor.Subscribe(func(name string) {
			for _, request := range to(name) {
				queue.Add(request)
			}
		})
		context.AfterFunc(ctx, cancel)
		return nil
	})
}
