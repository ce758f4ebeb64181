package move

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
)

// HostAccess is the connection to a management cluster. `slipway move` fills it in for [FindHost].
type HostAccess struct {
	Client client.Reader
	Config *rest.Config
}

// hostLocation is a management cluster and the state of the location that it publishes (`slipway up` writes it to a
// ConfigMap).
type hostLocation struct {
	// Name is "source" or "target".
	Name string
	// Named reports whether it publishes a location.
	Named bool
	hosttransfer.Location
	// InstanceID is the instance ID of the data directory at that location; empty if this user cannot read one.
	InstanceID string
	// OwnedByUser reports whether this user owns the folder.
	OwnedByUser bool
	// Locked reports whether a process holds the lock of the data directory.
	Locked bool
	// TrustsCA reports whether the connection trusts the CA in the data directory.
	TrustsCA bool
	// Mount is the ID of its mount.
	Mount uint64
	// Versions are the Kubernetes versions that it can run.
	Versions []string
}

// findLocation reads the location where a management cluster runs.
func findLocation(ctx context.Context, name string, a HostAccess) (hostLocation, error) {
	f := hostLocation{Name: name}
	cm := &corev1.ConfigMap{}
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: hosttransfer.LocationNamespace, Name: hosttransfer.LocationName}, cm)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("reading where the %s runs: %w", name, err)
	}
	if f.Location, f.Named = hosttransfer.LocationFromData(cm.Data); !f.Named {
		return f, nil
	}
	dir := datadir.Dir(f.Dir)
	info, err := os.Stat(f.Dir)
	if err != nil {
		return f, nil // reported by [sharedHostProblem]
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.OwnedByUser = int(st.Uid) == os.Geteuid()
	}
	if f.InstanceID, err = datadir.ReadInstance(dir); err != nil {
		f.InstanceID = ""
	}
	state, err := datadir.Inspect(dir)
	if err != nil {
		return f, nil
	}
	f.Locked = state.Held && state.Run != nil
	f.TrustsCA = trusts(a.Config, pki.Folder{Path: dir.PKI()}.Cert("ca"))
	var x unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, f.Dir, 0, unix.STATX_MNT_ID, &x) == nil {
		f.Mount = x.Mnt_id
	}
	if f.Locked {
		store := versions.LocalStore(dir.Kubernetes())
		store.Included = state.Run.KubernetesVersion
		f.Versions = store.Versions()
	}
	return f, nil
}

// trusts reports whether a connection trusts the CA in a file, which proves that it reaches the owner of its key.
func trusts(cfg *rest.Config, file string) bool {
	data := cfg.CAData
	if len(data) == 0 && cfg.CAFile != "" {
		data, _ = os.ReadFile(cfg.CAFile)
	}
	own, err := os.ReadFile(file)
	if err != nil || cfg.Insecure {
		return false
	}
	a, _ := pem.Decode(data)
	b, _ := pem.Decode(own)
	return a != nil && b != nil && bytes.Equal(a.Bytes, b.Bytes)
}

// sharedHostProblem returns the reason why nothing can be transferred between the two; empty if it can. boot is the
// boot ID of the running kernel.
func sharedHostProblem(source, target hostLocation, boot string) string {
	for _, f := range []hostLocation{source, target} {
		switch {
		case !f.Named:
			return fmt.Sprintf("the %s does not tell this user on which host it runs: it is not the management cluster of \"slipway up\", or that of an older version", f.Name)
		case f.Boot != boot && source.Boot == target.Boot:
			return "both management clusters run on another host than this command: run it there"
		case f.Boot != boot:
			return fmt.Sprintf("the %s runs on another host", f.Name)
		case f.InstanceID != f.Instance:
			return fmt.Sprintf("the data directory %s, in which the %s says that it runs, cannot be read, or is another one: run this command as the user of \"slipway up\", outside of containers", f.Dir, f.Name)
		case !f.OwnedByUser:
			return fmt.Sprintf("the data directory %s of the %s is another user's", f.Dir, f.Name)
		case !f.Locked:
			return fmt.Sprintf("no process of slipway runs in %s, where the %s says that it does", f.Dir, f.Name)
		case !f.TrustsCA:
			return fmt.Sprintf("the kubeconfig of the %s does not trust the authority of its data directory: use the one in %s", f.Name, f.Dir)
		}
	}
	switch {
	case source.Mount != target.Mount:
		return fmt.Sprintf("%s and %s are on different file systems, so that folders cannot be handed over", source.Dir, target.Dir)
	case source.Docker != target.Docker:
		return fmt.Sprintf("source and target use different Docker Engines (DOCKER_HOST %q and %q)", source.Docker, target.Docker)
	}
	return ""
}

// FindHost returns the pair of data directories if both management clusters are on this host; otherwise why is the
// reason. "slipway move" calls it before the move, unless the data is transferred.
func FindHost(ctx context.Context, source, target HostAccess) (p *HostPair, why string, err error) {
	from, err := findLocation(ctx, "source", source)
	if err != nil {
		return nil, "", err
	}
	to, err := findLocation(ctx, "target", target)
	if err != nil {
		return nil, "", err
	}
	here, err := hosttransfer.LocationOnHost("", "", os.Getenv)
	if err != nil {
		return nil, "", fmt.Errorf("reading which host this is: %w", err)
	}
	if why := sharedHostProblem(from, to, here.Boot); why != "" {
		return nil, why, nil
	}
	p, err = newPair(from, to)
	return p, "", err
}
