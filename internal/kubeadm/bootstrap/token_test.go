package bootstrap

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KB-10
func TestRefresh(t *testing.T) {
	ttl := 12 * time.Minute
	cases := map[string]struct {
		state tokenState
		want  tokenNeed
	}{
		"missing":        {tokenState{}, tokenCreate},
		"fresh":          {tokenState{Found: true, Expires: discoveryNow.Add(ttl)}, tokenNothing},
		"exactly 5/6":    {tokenState{Found: true, Expires: discoveryNow.Add(10 * time.Minute)}, tokenNothing},
		"less than 5/6":  {tokenState{Found: true, Expires: discoveryNow.Add(10*time.Minute - 1)}, tokenExtend},
		"expired":        {tokenState{Found: true, Expires: discoveryNow.Add(-time.Hour)}, tokenExtend},
		"without an end": {tokenState{Found: true}, tokenNothing},
	}
	for name, tc := range cases {
		need, again := tokenRefresh(tc.state, discoveryNow, ttl)
		if need != tc.want || again != 4*time.Minute {
			t.Errorf("%s: got %d and %s, want %d and a third of the TTL", name, need, again, tc.want)
		}
	}
}

// KB-11
func TestRotate(t *testing.T) {
	ttl := 12 * time.Minute
	cases := map[string]struct {
		state tokenState
		want  tokenNeed
		again time.Duration
	}{
		"missing":        {tokenState{}, tokenReplace, 6 * time.Minute},
		"fresh":          {tokenState{Found: true, Expires: discoveryNow.Add(ttl)}, tokenNothing, 6 * time.Minute},
		"just before":    {tokenState{Found: true, Expires: discoveryNow.Add(7 * time.Minute)}, tokenNothing, time.Minute},
		"half":           {tokenState{Found: true, Expires: discoveryNow.Add(6 * time.Minute)}, tokenReplace, 6 * time.Minute},
		"expired":        {tokenState{Found: true, Expires: discoveryNow.Add(-1)}, tokenReplace, 6 * time.Minute},
		"without an end": {tokenState{Found: true}, tokenNothing, 0},
	}
	for name, tc := range cases {
		need, again := tokenRotate(tc.state, discoveryNow, ttl)
		if need != tc.want || again != tc.again {
			t.Errorf("%s: got %d and %s, want %d and %s", name, need, again, tc.want, tc.again)
		}
	}
}

// KB-09
func TestSecret(t *testing.T) {
	owner := TokenOwner{Namespace: "ns", Name: "worker-1"}
	got := TokenSecret(discoveryToken, owner, TokenLifetime{From: discoveryNow, TTL: defaultTTL})
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef",
			Labels: map[string]string{"bootstrap.slipway.dev/kubeadmconfig": owner.Label()}},
		Type: "bootstrap.kubernetes.io/token",
		Data: map[string][]byte{
			"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "expiration": []byte("2026-01-02T03:19:05Z"),
			"usage-bootstrap-signing": []byte("true"), "usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups": []byte("system:bootstrappers:kubeadm:default-node-token"),
			"description":       []byte("for KubeadmConfig ns/worker-1"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(owner.Label()) > 63 || owner.Label() == (TokenOwner{Namespace: "ns", Name: "worker-2"}).Label() {
		t.Error("the label is short enough, and another owner has another")
	}
	if !tokenValid(discoveryToken) || tokenValid("abcdef") {
		t.Error("a token is id.secret")
	}
}

func TestStateOf(t *testing.T) {
	with := func(data map[string][]byte) *corev1.Secret { return &corev1.Secret{Data: data} }
	cases := map[string]struct {
		in   *corev1.Secret
		want tokenState
	}{
		"none":       {nil, tokenState{}},
		"no end":     {with(nil), tokenState{Found: true}},
		"end":        {with(map[string][]byte{"expiration": []byte("2026-01-02T03:04:05Z")}), tokenState{Found: true, Expires: discoveryNow}},
		"unreadable": {with(map[string][]byte{"expiration": []byte("soon")}), tokenState{Found: true, Expires: time.Unix(0, 0)}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, stateOf(tc.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
