package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/hidden"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manifest"
	"github.com/slipwayhq/slipway/internal/operate/create"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// run applies the generated manifest, waits for the nodes and prints the next steps, or prints the manifest with
// --dry-run. The command calls it after check.
func (f *createClusterFlags) run(ctx context.Context, e term.Env, name string) error {
	c, err := f.connection.Connect(e)
	if err != nil && f.dryRun && fault.KindOf(err) == fault.Unreachable {
		return f.print(ctx, e, nil, name)
	}
	if err != nil {
		return err
	}
	c.WarnIgnoredKubeconfig(e)
	if f.dryRun {
		return c.Explain(f.print(ctx, e, c, name))
	}
	objects, err := f.apply(ctx, e, c, name)
	if err != nil {
		return c.Explain(err)
	}
	_, _ = fmt.Fprintf(e.Err, "Cluster %q applied: ClusterClass %s, Kubernetes %s, %s%s\n", name, f.class, f.version, f.nodes(), f.network())
	if *f.timeout == 0 {
		return nil
	}
	start := e.Now()
	if err := f.wait(ctx, e, c, name); err != nil {
		return f.explainContinuation(e, c.Explain(err), name)
	}
	return f.format.Print(e.Out, jsonList(objects), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Cluster %q is ready after %s.\n\nNext steps:\n%s", name, progress.Elapsed(e.Now().Sub(start)), f.nextSteps(name))
		return err
	})
}

// apply generates the manifest and applies it. A lock prevents concurrent commands from choosing the same network.
func (f *createClusterFlags) apply(ctx context.Context, e term.Env, c *management.Connection, name string) ([]*unstructured.Unstructured, error) {
	release, err := create.Lock(ctx, c.DataDir)
	if err != nil {
		return nil, err
	}
	defer release()
	missing, objects, err := f.objects(ctx, c, name)
	if err != nil {
		return nil, err
	}
	show := func(text string) { _, _ = fmt.Fprintln(e.Err, text) }
	if err := f.checkHost(ctx, c, f.variables, show); err != nil {
		return nil, err
	}
	if err := f.checkEndpoint(ctx, c.Client, c.Namespace, name); err != nil {
		return nil, err
	}
	if err := f.checkSSHHosts(ctx, c.Client, c.Namespace, awaitHosts(ctx, show)); err != nil {
		return nil, err
	}
	if err := create.CreateMissing(ctx, c.Client, missing); err != nil {
		return nil, err
	}
	return objects, create.Apply(ctx, c.Client, objects)
}

// print prints the manifest. Without a management cluster (c is nil), only the routes of this host are known to be in
// use.
func (f *createClusterFlags) print(ctx context.Context, e term.Env, c *management.Connection, name string) error {
	missing, objects, err := f.objects(ctx, c, name)
	if c != nil && fault.KindOf(err) == fault.Unreachable {
		c = nil
		missing, objects, err = f.objects(ctx, nil, name)
	}
	if err != nil {
		return err
	}
	objects = append(missing, objects...)
	if c == nil {
		_, _ = fmt.Fprintln(e.Err, "No management cluster is reachable: the network may be in use by another cluster.")
	}
	if f.format.String() == "json" {
		return f.format.Print(e.Out, jsonList(objects), nil)
	}
	data, err := manifest.YAML(objects)
	if err != nil {
		return err
	}
	_, err = e.Out.Write(data)
	return err
}

// objects generates the manifest and the missing objects of its class. The management cluster determines whether the
// host has the version. apply and print call it. It sets the variables, the network and the number of control plane
// nodes in f.
func (f *createClusterFlags) objects(ctx context.Context, c *management.Connection, name string) (missing, objects []*unstructured.Unstructured, err error) {
	var reader client.Reader
	namespace := f.connection.Namespace
	if c != nil {
		reader, namespace = c.Client, c.Namespace
	}
	chosen, err := template.FindClass(ctx, reader, namespace, f.ref)
	if err != nil {
		return nil, nil, err
	}
	if c != nil {
		if lacks := hidden.UnsupportedVersion(datadir.Dir(c.DataDir), chosen, f.version); lacks != "" {
			return nil, nil, usage("--kubernetes-version: %s", lacks)
		}
	}
	want := template.ClusterManifest{Namespace: namespace, Name: name, Version: f.version, Class: f.ref, Hosts: chosen.UsesHosts()}
	if want.Variables, err = chosen.Values(f.settings); err != nil {
		return nil, nil, err
	}
	f.variables, f.hosts = want.Variables, want.Hosts
	if chosen.UsesContainers() {
		if err := f.checkNodes(ctx, c, want.Variables); err != nil {
			return nil, nil, err
		}
	}
	if f.controlPlanes, err = chosen.ControlPlanes(f.controlPlanes); err != nil {
		return nil, nil, err
	}
	want.ControlPlanes = f.controlPlanes
	if want.Workers, err = chosen.Workers(f.workers); err != nil {
		return nil, nil, err
	}
	switch {
	case chosen.UsesContainers():
		host, err := hidden.HostNetworks(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		if err := f.chooseNetwork(ctx, reader, client.ObjectKey{Namespace: namespace, Name: name}, host); err != nil {
			return nil, nil, err
		}
		want.Subnet = f.prefix
	case f.prefix.IsValid():
		return nil, nil, usage("--subnet: clusters of ClusterClass %q have no network on this host", f.class)
	}
	objects, err = want.Objects()
	return chosen.Missing, objects, err
}

// chooseNetwork selects an unused network: the one from the flags, or any other. objects calls it. The lock of apply is
// held until the cluster exists, because only then is the network in use.
func (f *createClusterFlags) chooseNetwork(ctx context.Context, r client.Reader, key client.ObjectKey, host create.Host) (err error) {
	if slices.ContainsFunc(f.settings, func(s string) bool { return strings.HasPrefix(s, template.SubnetVariable+"=") }) {
		return usage("--set %s: use --subnet, which also makes the ranges of Pods and Services", template.SubnetVariable)
	}
	if f.prefix.IsValid() {
		err = create.CheckSubnet(ctx, r, key, f.prefix, host)
	} else {
		f.prefix, err = create.SelectSubnet(ctx, r, host)
	}
	if err != nil {
		return err
	}
	return f.checkNodeCapacity()
}

// nodes formats the number of nodes.
func (f *createClusterFlags) nodes() string {
	workers := fmt.Sprintf("workers: %d", f.workers)
	if f.controlPlanes == 0 {
		return workers
	}
	return fmt.Sprintf("control plane nodes: %d, %s", f.controlPlanes, workers)
}

// network formats the chosen network. It returns an empty string if the class defines the network. The messages of run
// contain it.
func (f *createClusterFlags) network() string {
	if !f.prefix.IsValid() {
		return ""
	}
	return ", network " + f.prefix.String()
}

func (f *createClusterFlags) wait(ctx context.Context, e term.Env, c *management.Connection, name string) error {
	ctx, cancel := context.WithTimeout(ctx, *f.timeout)
	defer cancel()
	return progress.WaitForCreation(ctx, c.Client, c.Key(name), term.Reporter(e))
}

// jsonList returns the JSON List that kubectl prints for several objects.
func jsonList(objects []*unstructured.Unstructured) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
}

// explainContinuation prints, when the wait ends early, that the creation continues and how to follow it.
func (f *createClusterFlags) explainContinuation(e term.Env, err error, name string) error {
	known := fault.As(err)
	if errors.Is(err, context.Canceled) || known != nil && known.Reason == progress.ReasonTimeout {
		_, _ = fmt.Fprintf(e.Err, "The creation of cluster %q continues; \"slipway describe cluster %s%s\" shows how far it is.\n", name, name, f.repeatFlags())
	}
	if known != nil && known.Reason == progress.ReasonRefused {
		_, _ = fmt.Fprintf(e.Err, "Cluster %q stays as it was made: correct it, or remove it with \"slipway delete cluster %s%s\".\n", name, name, f.repeatFlags())
	}
	return err
}

// nextSteps lists the usual next commands. They request credentials for the current user, or the administrator's if the
// cluster may be simulated, because simulated clusters sign no certificates.
func (f *createClusterFlags) nextSteps(name string) string {
	again, person := f.repeatFlags(), ""
	if f.prefix.IsValid() {
		person = ` --user "$(id -un)"`
	}
	return strings.Join([]string{
		"  slipway get kubeconfig " + name + again + person + " --output-file " + name + ".kubeconfig",
		"  slipway kubectl --kubeconfig " + name + ".kubeconfig get nodes",
		"  slipway describe cluster " + name + again,
		"  slipway delete cluster " + name + again,
		"",
	}, "\n")
}

// repeatFlags repeats the flags that select the management cluster and the namespace.
func (f *createClusterFlags) repeatFlags() string {
	if f.connection.Namespace == "" {
		return f.connection.RepeatFlags()
	}
	return f.connection.RepeatFlags() + " -n " + f.connection.Namespace
}
