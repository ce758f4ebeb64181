package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/moby/moby/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/local/container"
)

// HostDocker lists the Docker resources of a Cluster that the source owns. Package container implements it.
type HostDocker interface {
	ListOwned(ctx context.Context, cluster string) ([]hosttransfer.Item, error)
}

// HostDataDir is one of the two data directories.
type HostDataDir struct {
	Dir   datadir.Dir
	Store *hosttransfer.Store
	// Versions are the Kubernetes versions that it can run.
	Versions []string
}

// HostPair is the source and target data directories on one host. A move with [Options.Host] transfers the resources on
// the host between them.
type HostPair struct {
	From, To HostDataDir
	Docker   HostDocker
	// BeforeWrite is called before each write, and can abort with an error; it may be nil.
	BeforeWrite func() error
	// ReleaseTimeout is the timeout for the source to release a control plane.
	ReleaseTimeout time.Duration
}

// newPair returns the pair that [FindHost] has found. It does not connect to Docker yet.
func newPair(from, to hostLocation) (*HostPair, error) {
	p := &HostPair{ReleaseTimeout: 30 * time.Second}
	for place, f := range map[*HostDataDir]hostLocation{&p.From: from, &p.To: to} {
		*place = HostDataDir{Dir: datadir.Dir(f.Dir), Store: hosttransfer.Open(datadir.Dir(f.Dir), f.Instance), Versions: f.Versions}
	}
	engine, err := container.New(container.Config{Instance: from.Instance, Address: cmp.Or(from.Docker, client.DefaultDockerHost), Ownership: p.From.Store})
	p.Docker = engine
	return p, err
}

// Read reads the host resources of the selected Clusters. It writes nothing. Move.readHost calls it for the plan, and
// again right before the transfer.
func (p *HostPair) Read(ctx context.Context, selection graph.Selection) (HostResources, error) {
	f := HostResources{From: p.From.Store.Instance(), To: p.To.Store.Instance(), Target: string(p.To.Dir), Versions: p.To.Versions}
	records, err := p.From.Store.Outgoing()
	if err != nil {
		return f, err
	}
	for _, i := range selection.Find(graph.Cluster) {
		if i.Copy || !i.ID.IsCore(graph.Cluster) {
			continue
		}
		c := HostCluster{Key: i.ID.Namespace + "/" + i.ID.Name, UID: string(i.GetUID())}
		for n, r := range records {
			if r.UID == c.UID && r.InProgress {
				c.Record = &records[n]
			}
		}
		if folder := filepath.Join(i.ID.Namespace, i.ID.Name); exists(p.From.Dir.Images(), folder) {
			c.Images, c.ImagesAtTarget = []string{folder}, exists(p.To.Dir.Images(), folder)
		}
		onHost, err := p.readObjects(&c, i.ID, selection)
		if err != nil {
			return f, err
		}
		if onHost || c.Record != nil && len(c.Record.Items) > 0 {
			if c.Items, err = p.Docker.ListOwned(ctx, c.Key); err != nil {
				return f, err
			}
		}
		f.Clusters = append(f.Clusters, c)
	}
	f.Orphans = orphanedResources(selection, f.Clusters)
	return f, nil
}

// orphanedResources returns the selected objects on the host that belong to none of the Clusters.
func orphanedResources(selection graph.Selection, clusters []HostCluster) []graph.ID {
	var out []graph.ID
	for _, i := range selection.Items() {
		of := i.ID.Namespace + "/" + clusterOf(i)
		if OnHost(i) && !slices.ContainsFunc(clusters, func(c HostCluster) bool { return c.Key == of }) {
			out = append(out, i.ID)
		}
	}
	return out
}

// readObjects reads the host resources of one Cluster's objects; onHost reports whether any may be in Docker.
func (p *HostPair) readObjects(c *HostCluster, cluster graph.ID, selection graph.Selection) (onHost bool, err error) {
	for _, i := range selection.Items() {
		if !OnHost(i) || i.ID.Namespace != cluster.Namespace || clusterOf(i) != cluster.Name {
			continue
		}
		switch {
		case isHostedControlPlane(i.ID):
			plane, err := p.readPlane(i)
			if err != nil {
				return onHost, err
			}
			c.Planes = append(c.Planes, plane)
			continue
		case i.ID.Kind == "LocalCluster":
			c.Networks = append(c.Networks, i.ID)
			if name := folderName(i.ID); exists(p.From.Dir.Balancers(), name) {
				c.Balancers = append(c.Balancers, name)
			}
		case i.ID.Kind == "LocalMachine":
			c.Machines = append(c.Machines, HostMachine{ID: i.ID, Object: i.ID.Namespace + "/" + i.ID.Name})
		}
		onHost = true
	}
	return onHost, nil
}

// folderName returns the name of an object's folder. It is unique, because a namespace contains no dot. The folders of
// control planes and load balancers have these names, so the form must not change.
func folderName(id graph.ID) string { return id.Namespace + "." + id.Name }

func exists(root, name string) bool {
	_, err := os.Lstat(filepath.Join(root, name))
	return !errors.Is(err, os.ErrNotExist)
}

func (p *HostPair) readPlane(i graph.Item) (HostPlane, error) {
	annotations := i.GetAnnotations()
	out := HostPlane{
		ID: i.ID, Name: folderName(i.ID), Initialized: annotations[hostedv1.InitializedAnnotation] != "", Restoring: annotations[hostedv1.RestoreAnnotation] != "",
	}
	out.AtSource, out.AtTarget = exists(p.From.Dir.Planes(), out.Name), exists(p.To.Dir.Planes(), out.Name)
	spec, _ := i.UnstructuredContent()["spec"].(map[string]any)
	out.Version, _ = spec["version"].(string)
	folder := processconfig.Folder(filepath.Join(p.From.Dir.Planes(), out.Name))
	if !out.AtSource {
		folder = processconfig.Folder(filepath.Join(p.To.Dir.Planes(), out.Name))
	}
	run, alive, err := folder.ReadRun()
	if err != nil {
		return out, fmt.Errorf("reading the process of %s: %w", i.ID, err)
	}
	if alive {
		out.PID, out.Relocatable = run.PID, relocatable(run, filepath.Join(p.To.Dir.Planes(), out.Name))
		if run.Version != "" {
			out.Version = run.Version
		}
	}
	return out, nil
}
