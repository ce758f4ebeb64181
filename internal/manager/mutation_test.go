package manager

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// detector is the variable that makes client-go compare what is in caches with copies. hack/test.sh sets it for all unit
// tests: controllers read without copying, and a change of what they read would show up anywhere else.
const detector = "KUBE_CACHE_MUTATION_DETECTOR"

// TestMutationDetector: with the variable, a change of an object in a cache of the manager ends the program. The test runs
// itself as a child, which is to die.
func TestMutationDetector(t *testing.T) {
	if os.Getenv("SLIPWAY_TEST_CHILD") != "" {
		changeWhatIsCached(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutationDetector$", "-test.timeout=1m")
	child.Env = append(os.Environ(), detector+"=true", "SLIPWAY_TEST_CHILD=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cache *v1beta2.Machine modified") {
		t.Errorf("the child ended with %v and did not name the cache:\n%s", err, out)
	}
}

func changeWhatIsCached(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	made, err := newInformers(scheme, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer made.release()
	source := cachetesting.NewFakeControllerSource()
	source.Add(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m1"}})
	informer := made.new(source, &clusterv1.Machine{}, 0, toolscache.Indexers{})
	go informer.Run(t.Context().Done())
	if !toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the cache was not filled")
	}
	for _, o := range informer.GetStore().List() {
		o.(*clusterv1.Machine).Labels = map[string]string{"changed": "in the cache"}
	}
	<-time.After(30 * time.Second) // the detector compares every second, and does not return
}
