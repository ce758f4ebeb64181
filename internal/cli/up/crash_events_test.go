package up

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/slipwayhq/slipway/internal/controlplane/managerproc"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// Who looks at an object that the manager crashed over finds out there.
func TestEventsOfACrash(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	c := kubernetes.NewForConfigOrDie(server.Config)
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), team, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pool := managerproc.Subject{APIVersion: "infrastructure.slipway.dev/v1alpha1", Kind: "LocalMachinePool", Namespace: "team-a", Name: "x", UID: "u"}
	everywhere := managerproc.Subject{APIVersion: "runtime.cluster.x-k8s.io/v1beta2", Kind: "ExtensionConfig", Name: "e", UID: "v"}
	decoded := managerproc.Subject{Work: managerproc.Decoding, APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Namespace: "team-a", Name: "s1"}
	f := managerproc.Failure{
		How: strings.Repeat("it crashed ", 100), Suspects: []managerproc.Subject{pool, everywhere, decoded},
		NewlyQuarantined: []managerproc.Quarantined{{Subject: pool, Until: time.Now().Add(time.Minute), Failures: 2}},
	}
	if err := recordFailure(t.Context(), server.Config, f); err != nil {
		t.Fatal(err)
	}
	list, err := c.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]eventsv1.Event{}
	for _, e := range list.Items {
		found[e.Reason+" "+e.Namespace+" "+string(e.Regarding.UID)] = e
	}
	for _, key := range []string{"ManagerCrashed team-a u", "SetAside team-a u", "ManagerCrashed default v", "ManagerCrashed team-a "} {
		if e, ok := found[key]; !ok || e.Type != corev1.EventTypeWarning {
			t.Errorf("no Warning %q among %d events", key, len(list.Items))
		}
	}
	if e := found["SetAside team-a u"]; e.Regarding.Name != "x" || !strings.Contains(e.Note, "crashed 2 times") {
		t.Errorf("%+v", e)
	}
}

// TestEventLimits checks the limits of the API server for names and notes of Events.
func TestEventLimits(t *testing.T) {
	s := managerproc.Subject{Namespace: "a", Name: strings.Repeat("x", 215) + ".y" + strings.Repeat("z", 36)}
	e := event(s, time.Unix(1, 0), reasonCrashed, strings.Repeat("x", maxNoteLength-1)+"é")
	if errs := validation.IsDNS1123Subdomain(e.Name); len(errs) > 0 {
		t.Errorf("%s: %v", e.Name, errs)
	}
	if len(e.Note) != maxNoteLength-1 || !utf8.ValidString(e.Note) {
		t.Errorf("%d bytes: %q", len(e.Note), e.Note[maxNoteLength-5:])
	}
}
