// Package soak runs simulated clusters through half an hour of changes, faults and kills of the manager, and checks that
// nothing is left over.
package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/connrotation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// readyTimeout ends a run in which the clusters do not become ready.
const readyTimeout = 10 * time.Minute

type soak struct {
	harness.Options
	harness.Fleet
	manifest     string
	clusters     int
	length, kill time.Duration
	seed         uint64

	env, other *harness.Environment // clusters move from env to other and back
	extension  *faultyExtension
	random     *rand.Rand
	report     report
	start      time.Time
}

func Command() *cobra.Command { return (&soak{}).command() }

func (s *soak) command() *cobra.Command {
	cmd := s.Command("soak", "disturb simulated clusters, kill the manager, and check that nothing is left over", "soak.json", s.run)
	f := cmd.Flags()
	f.StringVar(&s.manifest, "manifest", filepath.Join("examples", "fleet.yaml"), "simulated cluster with a MachineDeployment of one worker")
	f.IntVar(&s.clusters, "clusters", 20, "number of clusters")
	f.DurationVar(&s.length, "time", 30*time.Minute, "duration of the disturbance")
	f.DurationVar(&s.kill, "kill", time.Minute, "time between two kills of the manager, except in the last fifth of the time; 0: never")
	f.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "determines the order of the actions")
	f.Lookup("seed").DefValue = "the current time"
	return cmd
}

func (s *soak) run(ctx context.Context) {
	s.random, s.start = rand.New(rand.NewPCG(s.seed, 0)), time.Now()
	s.report = report{Seed: s.seed, Clusters: s.clusters, Actions: map[string]int{}}
	if s.clusters < 1 {
		harness.Failf("--clusters must be above zero")
	}
	manifest := harness.ReadTemplate(s.manifest)
	s.extension = startExtension(s.seed)
	defer s.extension.close()
	var flags []string
	if manifest.OfClass {
		flags = append(flags, "--feature-gates=ClusterTopology=true,RuntimeSDK=true")
	}
	s.env = harness.StartEnvironment(ctx, s.Binary, flags...)
	defer harness.Close(s.env.Stop)
	s.other = harness.StartEnvironment(ctx, s.Binary, flags...)
	defer harness.Close(s.other.Stop)
	s.Fleet = harness.NewFleet(manifest, s.env.Config)
	err := harness.Try(func() {
		s.env.WithLog(func() {
			for _, step := range []func(context.Context){
				s.prepare, s.waitReady, s.disturb, s.revertAll, s.waitReady, s.checkLeftovers, s.compareWithFresh,
			} {
				step(ctx)
			}
		})
	})
	s.report.write(s.Out)
	harness.Checkf(err, "seed %d", s.seed)
}

func (s *soak) logf(format string, args ...any) {
	s.Logf("%6s %s", time.Since(s.start).Round(time.Second), fmt.Sprintf(format, args...))
}

// prepare creates the clusters.
func (s *soak) prepare(ctx context.Context) {
	s.logf("seed %d: creating %d clusters …", s.seed, s.clusters)
	s.CreateShared(ctx)
	if s.OfClass {
		s.extension.register(ctx, s.Client)
	}
	for n := range s.clusters {
		s.Create(ctx, n, waitForNodeDeletion)
	}
}

func (s *soak) revertAll(ctx context.Context) {
	s.logf("reverting every fault …")
	s.extension.setFaulty(false)
	revertFaults(ctx, s.Client, s.Namespace)
}

// disturb performs an action every second. In the last fifth of the time the manager is not killed, because it is compared
// with a fresh manager afterwards.
func (s *soak) disturb(ctx context.Context) {
	s.logf("disturbing them for %v …", s.length)
	s.extension.setFaulty(true)
	start := time.Now()
	killed, lastKill := start, s.length*4/5
	for time.Since(start) < s.length {
		if s.kill > 0 && time.Since(start) < lastKill && time.Since(killed) >= s.kill {
			s.killManager(ctx)
			killed = time.Now()
		}
		a := s.choose()
		err := harness.Try(func() { a.act(ctx, s.random.IntN(s.clusters)) })
		harness.Checkf(client.IgnoreNotFound(err), "%s", a.name)
		s.report.Actions[a.name]++
		u := s.env.Usage()
		s.report.Samples = append(s.report.Samples, sample{
			After: time.Since(s.start).Seconds(), ManagerMB: u.Manager.Megabytes(), ServerMB: u.Server.Megabytes(),
		})
		harness.Sleep(ctx, time.Second)
	}
}

func (s *soak) killManager(ctx context.Context) {
	harness.Check(s.env.KillManager())
	start := time.Now()
	s.env.StartManager(ctx)
	took := time.Since(start).Seconds()
	s.report.Kills++
	s.report.SlowestStart = max(s.report.SlowestStart, took)
	s.logf("killed the manager; it was ready again after %.1f s; so far %v", took, s.report.Actions)
}

// waitReady waits until every Cluster is Available, every MachineDeployment and kubeadm control plane has its desired
// replicas, and nothing is written.
func (s *soak) waitReady(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	s.Objects("clusters").UntilEach(ctx, s.clusters, harness.IsAvailable)
	s.Objects("machinedeployments").UntilEach(ctx, s.clusters, missingReplicas)
	if s.OnMachines {
		s.KubeadmControlPlanes().UntilEach(ctx, s.clusters, missingReplicas)
	}
	harness.WaitSettled(ctx, s.Config, harness.QuietPeriod, readyTimeout)
}

// missingReplicas describes the difference of the status from the desired replicas.
func missingReplicas(o *unstructured.Unstructured) string {
	if int64(harness.Integer(o, "status", "observedGeneration")) != o.GetGeneration() {
		return fmt.Sprintf("generation %d is not observed yet", o.GetGeneration())
	}
	desired := harness.Integer(o, "spec", "replicas")
	for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
		if n := harness.Integer(o, "status", field); n != desired {
			return fmt.Sprintf("%d %s of %d", n, field, desired)
		}
	}
	return ""
}

// compareWithFresh compares the resources of the manager with a fresh manager for the same objects.
func (s *soak) compareWithFresh(ctx context.Context) {
	s.report.Old = s.heldByManager(ctx)
	s.killManager(ctx)
	harness.WaitSettled(ctx, s.Config, harness.QuietPeriod, readyTimeout)
	s.report.Fresh = s.heldByManager(ctx)
	harness.Check(s.report.checkLeaks())
}

// heldByManager first waits until timers and idle connections have ended.
func (s *soak) heldByManager(ctx context.Context) held {
	harness.Sleep(ctx, 30*time.Second)
	u := s.env.Usage()
	return held{Goroutines: s.env.Goroutines(ctx), Files: u.Manager.Files, MB: u.Manager.Megabytes()}
}

type report struct {
	Seed         uint64         `json:"seed"`
	Clusters     int            `json:"clusters"`
	Kills        int            `json:"kills"`
	SlowestStart float64        `json:"slowest_start_seconds"` // of the manager after a kill
	Actions      map[string]int `json:"actions"`
	Moved        int            `json:"moved"`   // to the other management cluster and back
	Refused      int            `json:"refused"` // moves, because of a fault
	Lies         map[string]int `json:"lies"`    // invalid responses of the extension
	Objects      map[string]int `json:"objects"` // at the end, by kind
	Old          held           `json:"manager_after_work"`
	Fresh        held           `json:"manager_fresh"`
	Samples      []sample       `json:"samples"`
}

// held are the resources of an idle manager.
type held struct {
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"files"`
	MB         float64 `json:"memory_mb"`
}

type sample struct {
	After     float64 `json:"after_seconds"`
	ManagerMB float64 `json:"manager_mb"`
	ServerMB  float64 `json:"apiserver_mb"`
}

// checkLeaks tolerates 40 goroutines and files, for idle connections and pools, and a quarter of the memory.
func (r *report) checkLeaks() error {
	const tolerance, growth = 40, 1.25
	var problems []error
	if r.Old.Goroutines > r.Fresh.Goroutines+tolerance {
		problems = append(problems, fmt.Errorf("goroutines leak: %d after work, %d in a fresh manager", r.Old.Goroutines, r.Fresh.Goroutines))
	}
	if r.Old.Files > r.Fresh.Files+tolerance {
		problems = append(problems, fmt.Errorf("files leak: %d after work, %d in a fresh manager", r.Old.Files, r.Fresh.Files))
	}
	for i, name := range []string{"API server's", "manager's"} {
		middle, last := r.thirds(func(s sample) float64 { return []float64{s.ServerMB, s.ManagerMB}[i] })
		if last > middle*growth {
			problems = append(problems, fmt.Errorf("the %s memory grows: %.0f MB on average in the middle third, %.0f MB in the last", name, middle, last))
		}
	}
	return errors.Join(problems...)
}

// thirds are the averages over the middle and the last third of the samples.
func (r *report) thirds(value func(sample) float64) (middle, last float64) {
	n := len(r.Samples) / 3
	for i := range n {
		middle += value(r.Samples[n+i]) / float64(n)
		last += value(r.Samples[len(r.Samples)-n+i]) / float64(n)
	}
	return middle, last
}

func (r *report) write(out string) {
	fmt.Print(r.summary())
	harness.WriteJSON(out, r)
	manager, server := harness.Line{Name: "manager"}, harness.Line{Name: "API server"}
	for _, s := range r.Samples {
		manager.Add(s.After, s.ManagerMB)
		server.Add(s.After, s.ServerMB)
	}
	harness.WriteFile(harness.Sibling(out, ".svg"), harness.Chart{
		Title:  fmt.Sprintf("Soak of %d clusters, seed %d: the manager is killed %d times", r.Clusters, r.Seed, r.Kills),
		Panels: []harness.Panel{{Title: "resident memory, MB", Lines: []harness.Line{manager, server}}},
	}.SVG())
}

func (r *report) summary() string {
	return fmt.Sprintf("seed %d: %d clusters, %d kills (slowest start %.1f s), actions %v\n", r.Seed, r.Clusters, r.Kills, r.SlowestStart, r.Actions) +
		fmt.Sprintf("moved away and back: %d (%d refused because of a fault); invalid responses of the extension: %v\n", r.Moved, r.Refused, r.Lies) +
		fmt.Sprintf("objects at the end: %v\n", r.Objects) +
		fmt.Sprintf("manager after work: %d goroutines, %d files, %.0f MB; fresh: %d, %d, %.0f MB\n",
			r.Old.Goroutines, r.Old.Files, r.Old.MB, r.Fresh.Goroutines, r.Fresh.Files, r.Fresh.MB)
}

// searchedKinds are the kinds of possible leftovers, by API version.
func searchedKinds() map[schema.GroupVersion][]string {
	return map[schema.GroupVersion][]string{
		{Version: "v1"}:        {"Secret"},
		clusterv1.GroupVersion: {"Cluster", "MachineDeployment", "MachineSet", "Machine", "MachineHealthCheck", "ClusterClass"},
		infrav1.GroupVersion:   {"LocalCluster", "LocalMachineTemplate", "LocalMachine", "LocalClusterTemplate"},
		{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2"}:    {"KubeadmConfigTemplate", "KubeadmConfig"},
		{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2"}: {"KubeadmControlPlane", "KubeadmControlPlaneTemplate"},
		hostedv1.GroupVersion: {"HostedControlPlane"},
	}
}

// checkLeftovers ends with an error that has every object that should not exist.
func (s *soak) checkLeftovers(ctx context.Context) {
	s.logf("every cluster is ready; searching for leftovers …")
	s.report.Lies = s.extension.counts()
	counts, existing := map[string]int{}, map[types.UID]bool{}
	var all []unstructured.Unstructured
	for version, kinds := range searchedKinds() {
		for _, kind := range kinds {
			objects := harness.List(ctx, s.Client, version.WithKind(kind), client.InNamespace(s.Namespace))
			for _, o := range objects {
				existing[o.GetUID()] = true
			}
			all, counts[kind] = append(all, objects...), len(objects)
		}
	}
	s.report.Objects = counts
	var problems []error
	for _, o := range all {
		if problem := leftover(o, existing); problem != "" {
			problems = append(problems, fmt.Errorf("%s %s %s", o.GetKind(), o.GetName(), problem))
		}
	}
	for _, kind := range []string{"LocalMachine", "KubeadmConfig"} {
		if counts[kind] != counts["Machine"] {
			problems = append(problems, fmt.Errorf("there are %d %ss and %d Machines", counts[kind], kind, counts["Machine"]))
		}
	}
	for n := range s.clusters {
		problems = append(problems, s.checkNodes(ctx, n))
	}
	harness.Check(errors.Join(append(problems, s.checkOther(ctx)...)...))
}

// leftover describes why an object should not exist: it is being deleted, or none of its owners exists.
func leftover(o unstructured.Unstructured, existing map[types.UID]bool) string {
	if o.GetDeletionTimestamp() != nil {
		return fmt.Sprintf("is being deleted but still exists: finalizers %v", o.GetFinalizers())
	}
	refs := o.GetOwnerReferences()
	for _, ref := range refs {
		if existing[ref.UID] {
			return ""
		}
	}
	if len(refs) == 0 {
		return ""
	}
	return fmt.Sprintf("has the owner %s %s, which is gone", refs[0].Kind, refs[0].Name)
}

// checkNodes compares the Nodes of a cluster with its Machines.
func (s *soak) checkNodes(ctx context.Context, cluster int) error {
	name := harness.ClusterName(cluster)
	machines := harness.List(ctx, s.Client, clusterv1.GroupVersion.WithKind("Machine"), client.InNamespace(s.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: name})
	var expected, actual []string
	for _, m := range machines {
		node, _, _ := unstructured.NestedString(m.Object, "status", "nodeRef", "name")
		expected = append(expected, node)
	}
	config := s.Workload(ctx, name)
	dialer := connrotation.NewDialer((&net.Dialer{}).DialContext)
	defer dialer.CloseAll() // the manager serves the workload API, and its open files are counted later
	config.Dial = dialer.DialContext
	harness.Nodes(config).Until(ctx, func(nodes []*unstructured.Unstructured) bool {
		for _, o := range nodes {
			actual = append(actual, o.GetName())
		}
		return true
	})
	slices.Sort(expected)
	slices.Sort(actual)
	if !slices.Equal(expected, actual) {
		return fmt.Errorf("cluster %s has the Nodes %v, but its Machines refer to %v", name, actual, expected)
	}
	return nil
}

// checkOther searches the other management cluster, in which only shared objects may exist.
func (s *soak) checkOther(ctx context.Context) (problems []error) {
	c := harness.Must(client.New(s.other.Config, client.Options{}))
	for _, kind := range []schema.GroupVersionKind{
		clusterv1.GroupVersion.WithKind("Cluster"), clusterv1.GroupVersion.WithKind("Machine"),
		clusterv1.GroupVersion.WithKind("MachineDeployment"), infrav1.GroupVersion.WithKind("LocalMachine"),
	} {
		for _, o := range harness.List(ctx, c, kind, client.InNamespace(s.Namespace)) {
			problems = append(problems, fmt.Errorf("%s %s is left in the other management cluster", o.GetKind(), o.GetName()))
		}
	}
	return problems
}
