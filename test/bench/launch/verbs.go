package launch

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/release"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// machinesEach is the number of Machines of each Cluster that is saved or moved.
const machinesEach = 5

type verbs struct {
	harness.Options
	reference, home    string
	clusters, machines int
}

func VerbsCommand() *cobra.Command {
	v := &verbs{}
	cmd := v.Command("verbs", "measure init, describe, backup and move with many objects", "verbs.json", v.run)
	f := cmd.Flags()
	f.StringVar(&v.reference, "reference", "", "the reference's clusterctl, which moves the Clusters back; empty: not measured")
	f.IntVar(&v.clusters, "clusters", 100, "Clusters to save and to move")
	f.IntVar(&v.machines, "machines", 1000, "Machines of the Cluster to describe")
	return cmd
}

func (v *verbs) run(ctx context.Context) {
	v.home = harness.Must(os.MkdirTemp("", "slipway-bench-home-")) // without configuration files
	defer harness.Close(func() error { return os.RemoveAll(v.home) })
	v.RunReport(ctx, v.measureInit, v.measureClusters)
}

// measureInit measures in a management cluster without providers.
func (v *verbs) measureInit(ctx context.Context) {
	v.Logf("writing a release …")
	repositories := v.writeRelease(ctx)
	var all []string
	for _, set := range release.Providers() {
		all = append(all, string(set.Name))
	}
	harness.WithInstallation(ctx, v.Binary, func(in *harness.Installation) {
		in.Up(ctx, "--without", strings.Join(all, ","))
		v.Logf("installing four providers …")
		out := in.Run(ctx, "init", "--config", repositories, "--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "hosted",
			"--infrastructure", "local", "--kubeconfig", in.Kubeconfig())
		v.Add(harness.NewFigure("verbs.init", "init of four local repositories", out.Seconds, harness.Seconds).AtMost(10))
	}, "HOME="+v.home)
}

// writeRelease writes a release and returns the configuration file with its repositories.
func (v *verbs) writeRelease(ctx context.Context) string {
	const version = "v0.1.0"
	harness.Checkf(release.Write(ctx, release.Config{
		Dir: v.home, Version: version, Image: "slipway.example/manager", Binary: v.Binary, Sources: os.DirFS("."), Time: time.Unix(0, 0).UTC(),
	}), "write a release")
	text := "providers:\n"
	for _, p := range [][4]string{
		{string(providerset.Core), "cluster-api", "CoreProvider", "core"}, {string(providerset.BootstrapKubeadm), "kubeadm", "BootstrapProvider", "bootstrap"},
		{string(providerset.ControlPlaneHosted), "hosted", "ControlPlaneProvider", "control-plane"},
		{string(providerset.InfrastructureLocal), "local", "InfrastructureProvider", "infrastructure"},
	} {
		text += fmt.Sprintf("- {name: %s, type: %s, url: %q}\n", p[1], p[2], filepath.Join(v.home, p[0], version, p[3]+"-components.yaml"))
	}
	config := filepath.Join(v.home, "clusterctl.yaml")
	harness.WriteFile(config, text)
	return config
}

// measureClusters measures with simulated Clusters in two management clusters.
func (v *verbs) measureClusters(ctx context.Context) {
	harness.WithInstallation(ctx, v.Binary, func(source *harness.Installation) {
		harness.WithInstallation(ctx, v.Binary, func(target *harness.Installation) {
			manifest := harness.ReadTemplate(filepath.Join("examples", "fleet.yaml"))
			from, to := harness.NewFleet(manifest, source.Up(ctx)), harness.NewFleet(manifest, target.Up(ctx))
			v.measureDescribe(ctx, source, from)
			v.Logf("creating %d Clusters with %d Machines each …", v.clusters, machinesEach)
			v.create(ctx, from, v.clusters, machinesEach)
			v.measureBackup(ctx, source)
			v.measureMove(ctx, source, target, to)
		}, "HOME="+v.home)
	}, "HOME="+v.home)
}

// create creates Clusters and waits until they and their Machines are Available.
func (v *verbs) create(ctx context.Context, f harness.Fleet, clusters, machines int) {
	f.CreateAll(ctx, clusters, func(int) int { return machines })
	waitAvailable(ctx, f, clusters, clusters*machines)
}

func waitAvailable(ctx context.Context, f harness.Fleet, clusters, machines int) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute+time.Duration(machines)*time.Second)
	defer cancel()
	f.Objects("clusters").UntilEach(ctx, clusters, harness.IsAvailable)
	f.Objects("machines").UntilEach(ctx, machines, harness.IsAvailable)
}

// measureDescribe uses a Cluster in a namespace of its own.
func (v *verbs) measureDescribe(ctx context.Context, in *harness.Installation, f harness.Fleet) {
	v.Logf("creating a Cluster with %d Machines …", v.machines)
	f.Namespace = "large"
	in.Kubectl(ctx, "create", "namespace", f.Namespace)
	v.create(ctx, f, 1, v.machines)
	var times []float64
	describe := func(kubeconfig string) {
		out := in.Run(ctx, "describe", "cluster", harness.ClusterName(0), "-n", f.Namespace, "--kubeconfig", kubeconfig)
		times = append(times, out.Seconds)
	}
	for range 5 {
		describe(in.Kubeconfig())
	}
	v.Add(harness.NewMedian("verbs.describe", fmt.Sprintf("describe of a Cluster with %d Machines", v.machines), times, harness.Seconds).AtMost(1))
	requests := countProxied(in, f.Config, describe)
	v.Add(harness.NewFigure("verbs.describe.requests", "requests of that", float64(requests), harness.Count).AtMost(30))
}

// countProxied calls do with a kubeconfig for a proxy of the API server and returns the number of requests.
func countProxied(in *harness.Installation, config *rest.Config, do func(kubeconfig string)) int64 {
	transport, target := harness.Must(rest.TransportFor(config)), harness.Must(url.Parse(config.Host))
	var count atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		count.Add(1)
		r.SetURL(target)
	}})
	defer proxy.Close()
	kubeconfig := filepath.Join(in.Folder, "proxied.kubeconfig")
	harness.WriteFile(kubeconfig, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\n"+
		"users: [{name: c, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n", proxy.URL))
	do(kubeconfig)
	return count.Load()
}

func (v *verbs) measureBackup(ctx context.Context, in *harness.Installation) {
	v.Logf("saving them …")
	file := filepath.Join(in.Folder, "backup.tar.gz")
	out := in.Run(ctx, "backup", file, "-n", "default", "--kubeconfig", in.Kubeconfig())
	title := fmt.Sprintf("backup of %d Clusters with %d Machines each", v.clusters, machinesEach)
	v.Add(
		harness.NewFigure("verbs.backup", title, out.Seconds, harness.Seconds).AtMost(60),
		harness.NewFigure("verbs.backup.memory", "memory of that", out.MemoryPeak, harness.Megabytes),
		harness.NewFigure("verbs.backup.size", "size of the file", float64(harness.Must(os.Stat(file)).Size())/1e6, harness.Megabytes))
}

func (v *verbs) measureMove(ctx context.Context, source, target *harness.Installation, moved harness.Fleet) {
	v.Logf("moving them …")
	out := source.Run(ctx, "move", "--kubeconfig", source.Kubeconfig(), "--to-kubeconfig", target.Kubeconfig())
	title := fmt.Sprintf("move of %d Clusters with %d Machines each", v.clusters, machinesEach)
	v.Add(
		harness.NewFigure("verbs.move", title, out.Seconds, harness.Seconds).AtMost(60),
		harness.NewFigure("verbs.move.memory", "memory of that", out.MemoryPeak, harness.Megabytes).AtMost(200))
	if v.reference == "" {
		return
	}
	waitAvailable(ctx, moved, v.clusters, v.clusters*machinesEach)
	v.Logf("moving them back with the reference …")
	out = target.RunProgram(ctx, v.reference, "move", "--kubeconfig", target.Kubeconfig(), "--to-kubeconfig", source.Kubeconfig())
	v.Add(
		harness.NewFigure("verbs.move.reference", "the same, back, with the reference's clusterctl", out.Seconds, harness.Seconds),
		harness.NewFigure("verbs.move.reference.memory", "memory of that", out.MemoryPeak, harness.Megabytes))
}
