package launch

import (
	"context"
	"crypto/rand"
	"errors"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/release"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// machinesEach is the number of Machines of each Cluster that is saved or moved.
const machinesEach = 5

type verbs struct {
	harness.Options
	reference, home           string
	clusters, saved, machines int
}

func VerbsCommand() *cobra.Command {
	v := &verbs{}
	cmd := v.Command("verbs", "measure init, describe, backup and move with many objects", "verbs.json", v.run)
	f := cmd.Flags()
	f.StringVar(&v.reference, "reference", "", "the reference's clusterctl, which moves the Clusters back; empty: not measured")
	f.IntVar(&v.clusters, "clusters", 100, "Clusters to move")
	f.IntVar(&v.saved, "backup", 1000, "Clusters to save")
	f.IntVar(&v.machines, "machines", 1000, "Machines of the Cluster to describe")
	harness.AtLeast(f, "clusters", &v.clusters, 1)
	harness.AtLeast(f, "backup", &v.saved, 1)
	harness.AtLeast(f, "machines", &v.machines, 1)
	return cmd
}

func (v *verbs) run(ctx context.Context) (err error) {
	if v.home, err = os.MkdirTemp("", "slipway-bench-home-"); err != nil { // without configuration files
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(v.home)) }()
	return v.RunReport(ctx, v.measureStored, v.measureMove)
}

// measureStored measures in a management cluster without controllers.
func (v *verbs) measureStored(ctx context.Context) error {
	v.Logf("writing a release …")
	repositories, err := v.writeRelease(ctx)
	if err != nil {
		return err
	}
	var all []string
	for _, set := range release.Providers() {
		all = append(all, string(set.Name))
	}
	return harness.WithInstallation(ctx, v.Binary, func(in *harness.Installation) error {
		config, err := in.Up(ctx, "--without", strings.Join(all, ","))
		if err != nil {
			return err
		}
		v.Logf("installing four providers …")
		out, err := in.Run(ctx, "init", "--config", repositories, "--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "hosted",
			"--infrastructure", "local", "--kubeconfig", in.Kubeconfig())
		if err != nil {
			return err
		}
		v.Add(harness.NewFigure("verbs.init", "init of four local repositories", out.Seconds, harness.Seconds).AtMost(10))
		// No process serves the webhooks.
		if err := in.Kubectl(ctx, "delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all"); err != nil {
			return err
		}
		if err := v.measureDescribe(ctx, in, config); err != nil {
			return err
		}
		return v.measureBackup(ctx, in, config)
	}, "HOME="+v.home)
}

// writeRelease writes a release and returns the configuration file with its repositories.
func (v *verbs) writeRelease(ctx context.Context) (string, error) {
	const version = "v0.1.0"
	err := release.Write(ctx, release.Config{
		Dir: v.home, Version: version, Image: "slipway.example/manager", Binary: v.Binary, Sources: os.DirFS("."), Time: time.Unix(0, 0).UTC(),
	})
	if err != nil {
		return "", fmt.Errorf("write a release: %w", err)
	}
	text := "providers:\n"
	for _, p := range [][4]string{
		{string(providerset.Core), "cluster-api", "CoreProvider", "core"}, {string(providerset.BootstrapKubeadm), "kubeadm", "BootstrapProvider", "bootstrap"},
		{string(providerset.ControlPlaneHosted), "hosted", "ControlPlaneProvider", "control-plane"},
		{string(providerset.InfrastructureLocal), "local", "InfrastructureProvider", "infrastructure"},
	} {
		text += fmt.Sprintf("- {name: %s, type: %s, url: %q}\n", p[1], p[2], filepath.Join(v.home, p[0], version, p[3]+"-components.yaml"))
	}
	config := filepath.Join(v.home, "clusterctl.yaml")
	return config, os.WriteFile(config, []byte(text), 0o600)
}

func (v *verbs) measureDescribe(ctx context.Context, in *harness.Installation, config *rest.Config) error {
	v.Logf("creating a Cluster with %d Machines …", v.machines)
	if err := createStored(ctx, config, "large", 1, v.machines); err != nil {
		return err
	}
	var times []float64
	describe := func(kubeconfig string) error {
		out, err := in.Run(ctx, "describe", "cluster", harness.ClusterName(0), "-n", "large", "--kubeconfig", kubeconfig)
		times = append(times, out.Seconds)
		return err
	}
	for range 5 {
		if err := describe(in.Kubeconfig()); err != nil {
			return err
		}
	}
	v.Add(harness.NewMedian("verbs.describe", fmt.Sprintf("describe of a Cluster with %d Machines", v.machines), times, harness.Seconds).AtMost(1))
	requests, err := countProxied(in, config, describe)
	v.Add(harness.NewFigure("verbs.describe.requests", "requests of that", float64(requests), harness.Count).AtMost(30))
	return err
}

// countProxied calls do with a kubeconfig for a proxy of the API server and returns the number of requests.
func countProxied(in *harness.Installation, config *rest.Config, do func(kubeconfig string) error) (int64, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return 0, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return 0, err
	}
	var count atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		count.Add(1)
		r.SetURL(target)
	}})
	defer proxy.Close()
	kubeconfig := filepath.Join(in.Folder, "proxied.kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\n"+
		"users: [{name: c, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n", proxy.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		return 0, err
	}
	err = do(kubeconfig)
	return count.Load(), err
}

func (v *verbs) measureBackup(ctx context.Context, in *harness.Installation, config *rest.Config) error {
	v.Logf("creating %d Clusters to save …", v.saved)
	if err := createStored(ctx, config, "saved", v.saved, machinesEach); err != nil {
		return err
	}
	v.Logf("saving them …")
	file := filepath.Join(in.Folder, "backup.tar.gz")
	out, err := in.Run(ctx, "backup", file, "-n", "saved", "--kubeconfig", in.Kubeconfig())
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	v.Add(
		harness.NewFigure("verbs.backup", fmt.Sprintf("backup of %d Clusters with %d Machines each", v.saved, machinesEach), out.Seconds, harness.Seconds).AtMost(60),
		harness.NewFigure("verbs.backup.memory", "memory of that", out.MemoryPeak, harness.Megabytes),
		harness.NewFigure("verbs.backup.size", "size of the file", float64(info.Size())/1e6, harness.Megabytes))
	return nil
}

// measureMove moves simulated Clusters between two management clusters with controllers.
func (v *verbs) measureMove(ctx context.Context) error {
	return harness.WithInstallation(ctx, v.Binary, func(source *harness.Installation) error {
		return harness.WithInstallation(ctx, v.Binary, func(target *harness.Installation) error {
			return v.moveBetween(ctx, source, target)
		}, "HOME="+v.home)
	}, "HOME="+v.home)
}

func (v *verbs) moveBetween(ctx context.Context, source, target *harness.Installation) error {
	manifest, err := harness.ReadTemplate(filepath.Join("examples", "fleet.yaml"))
	if err != nil {
		return err
	}
	var fleets [2]harness.Fleet
	for i, in := range []*harness.Installation{source, target} {
		config, err := in.Up(ctx)
		if err != nil {
			return err
		}
		if fleets[i], err = harness.NewFleet(manifest, config); err != nil {
			return err
		}
	}
	v.Logf("creating %d Clusters with %d Machines each …", v.clusters, machinesEach)
	if err := fleets[0].CreateAll(ctx, v.clusters, func(int) int { return machinesEach }); err != nil {
		return err
	}
	if err := v.waitAvailable(ctx, fleets[0]); err != nil {
		return err
	}
	v.Logf("moving them …")
	out, err := source.Run(ctx, "move", "--kubeconfig", source.Kubeconfig(), "--to-kubeconfig", target.Kubeconfig())
	if err != nil {
		return err
	}
	v.Add(
		harness.NewFigure("verbs.move", fmt.Sprintf("move of %d Clusters with %d Machines each", v.clusters, machinesEach), out.Seconds, harness.Seconds).AtMost(60),
		harness.NewFigure("verbs.move.memory", "memory of that", out.MemoryPeak, harness.Megabytes).AtMost(200))
	if v.reference == "" {
		return nil
	}
	if err := v.waitAvailable(ctx, fleets[1]); err != nil {
		return err
	}
	v.Logf("moving them back with the reference …")
	if out, err = target.RunProgram(ctx, v.reference, "move", "--kubeconfig", target.Kubeconfig(), "--to-kubeconfig", source.Kubeconfig()); err != nil {
		return err
	}
	v.Add(
		harness.NewFigure("verbs.move.reference", "the same, back, with the reference's clusterctl", out.Seconds, harness.Seconds),
		harness.NewFigure("verbs.move.reference.memory", "memory of that", out.MemoryPeak, harness.Megabytes))
	return nil
}

// waitAvailable waits until all Clusters and Machines are Available, which a move requires.
func (v *verbs) waitAvailable(ctx context.Context, f harness.Fleet) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute+time.Duration(v.clusters)*3*time.Second)
	defer cancel()
	if err := f.Objects("clusters").UntilEach(ctx, v.clusters, harness.IsAvailable); err != nil {
		return err
	}
	return f.Objects("machines").UntilEach(ctx, v.clusters*machinesEach, harness.IsAvailable)
}

// storedCluster contains the objects of a Cluster as its controllers leave them: a line has the kind, the name, the kind of
// the controller owner, and the content. NAME is the name of the Cluster.
const storedCluster = `
Cluster             NAME            -                 spec: {controlPlaneRef: {apiGroup: controlplane.slipway.dev, kind: HostedControlPlane, name: NAME}, infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalCluster, name: NAME}}
LocalCluster        NAME            Cluster           spec: {backend: {simulated: {}}}
HostedControlPlane  NAME            Cluster           spec: {backend: {simulated: {}}, version: v1.36.3}
Secret              NAME-ca         Cluster           {type: cluster.x-k8s.io/secret, stringData: {value: RANDOM}}
Secret              NAME-etcd       Cluster           {type: cluster.x-k8s.io/secret, stringData: {value: RANDOM}}
Secret              NAME-proxy      Cluster           {type: cluster.x-k8s.io/secret, stringData: {value: RANDOM}}
Secret              NAME-sa         Cluster           {type: cluster.x-k8s.io/secret, stringData: {value: RANDOM}}
Secret              NAME-kubeconfig Cluster           {type: cluster.x-k8s.io/secret, stringData: {value: RANDOM}}
MachineDeployment   NAME-workers    Cluster           spec: {clusterName: NAME, replicas: REPLICAS, selector: {matchLabels: LABELS}, template: {metadata: {labels: LABELS}, spec: MACHINE}}
MachineSet          NAME-workers-a  MachineDeployment spec: {clusterName: NAME, replicas: REPLICAS, selector: {matchLabels: LABELS}, template: {metadata: {labels: LABELS}, spec: MACHINE}}
LocalMachineTemplate  NAME-workers  Cluster           spec: {template: {spec: {backend: {simulated: {}}}}}
KubeadmConfigTemplate NAME-workers  Cluster           spec: {template: {spec: {format: cloud-config}}}
`

// storedMachine contains the objects of a Machine.
const storedMachine = `
Machine             MACHINE_NAME    MachineSet        spec: {clusterName: NAME, version: v1.36.3, infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachine, name: MACHINE_NAME}, bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: MACHINE_NAME}}}
LocalMachine        MACHINE_NAME    Machine           spec: {backend: {simulated: {}}}
KubeadmConfig       MACHINE_NAME    Machine           spec: {format: cloud-config}
`

const machineTemplate = `{clusterName: NAME, version: v1.36.3, infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachineTemplate, name: NAME-workers}, bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: NAME-workers}}}`

func groupVersionOf(kind string) schema.GroupVersion {
	switch {
	case kind == "Secret":
		return schema.GroupVersion{Version: "v1"}
	case kind == "HostedControlPlane":
		return schema.GroupVersion{Group: "controlplane.slipway.dev", Version: "v1alpha1"}
	case strings.HasPrefix(kind, "Local"):
		return schema.GroupVersion{Group: "infrastructure.slipway.dev", Version: "v1alpha1"}
	case strings.HasPrefix(kind, "Kubeadm"):
		return schema.GroupVersion{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2"}
	}
	return schema.GroupVersion{Group: "cluster.x-k8s.io", Version: "v1beta2"}
}

// createStored creates Clusters in a new namespace without controllers.
func createStored(ctx context.Context, config *rest.Config, namespace string, count, machines int) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	ns := &unstructured.Unstructured{}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	ns.SetName(namespace)
	if err := c.Create(ctx, ns); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	return harness.InParallel(ctx, count, 32, func(ctx context.Context, n int) error {
		name := harness.ClusterName(n)
		replace := []string{"MACHINE_NAME", "", "REPLICAS", fmt.Sprint(machines), "RANDOM", strings.Repeat(rand.Text(), 60),
			"LABELS", "{cluster.x-k8s.io/cluster-name: " + name + ", cluster.x-k8s.io/deployment-name: " + name + "-workers}",
			"MACHINE", strings.ReplaceAll(machineTemplate, "NAME", name), "NAME", name}
		owners := map[string]*unstructured.Unstructured{}
		if err := createLines(ctx, c, strings.NewReplacer(replace...).Replace(storedCluster), namespace, owners); err != nil {
			return err
		}
		for m := range machines {
			replace[1] = fmt.Sprintf("%s-workers-%04d", name, m)
			if err := createLines(ctx, c, strings.NewReplacer(replace...).Replace(storedMachine), namespace, owners); err != nil {
				return err
			}
		}
		return nil
	})
}

// createLines creates an object for each line. owners are the last objects by kind.
func createLines(ctx context.Context, c client.Client, lines, namespace string, owners map[string]*unstructured.Unstructured) error {
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		fields := strings.Fields(line)
		kind, name, owner := fields[0], fields[1], owners[fields[2]]
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.Join(fields[3:], " ")), &o.Object); err != nil {
			return fmt.Errorf("parse %s: %w", line, err)
		}
		o.SetGroupVersionKind(groupVersionOf(kind).WithKind(kind))
		o.SetNamespace(namespace)
		o.SetName(name)
		cluster, _, _ := strings.Cut(name, "-")
		o.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/deployment-name": cluster + "-workers"})
		if owner != nil {
			err := unstructured.SetNestedSlice(o.Object, []any{map[string]any{"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(),
				"name": owner.GetName(), "uid": string(owner.GetUID()), "controller": true}}, "metadata", "ownerReferences")
			if err != nil {
				return err
			}
		}
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s: %w", kind, name, err)
		}
		owners[kind] = o
	}
	return nil
}
