package etcd

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestMembersHaveTheirAlarms(t *testing.T) {
	got := members(
		[]*pb.Member{{ID: 2, Name: "b", IsLearner: true}, {ID: 1, Name: "a"}},
		[]*pb.AlarmMember{{MemberID: 1, Alarm: pb.AlarmType_NOSPACE}, {MemberID: 1, Alarm: pb.AlarmType_CORRUPT}, {MemberID: 2}},
	)
	want := []Member{{ID: 1, Name: "a", Alarms: []string{"CORRUPT", "NOSPACE"}}, {ID: 2, Name: "b", Learner: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsHaveAKind(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"no leader": {rpctypes.ErrNoLeader, fault.Unreachable},
		"late":      {context.DeadlineExceeded, fault.Unreachable},
		"unhealthy": {rpctypes.ErrUnhealthy, fault.Unreachable},
		"not found": {rpctypes.ErrMemberNotFound, fault.Invalid},
	} {
		if got := fault.KindOf(asFault("a", c.err)); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// A member that accepts the connection and says nothing costs the time of its call, and the next one is asked.
func TestAMemberThatHangsCostsItsTimeOnly(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	c, err := Connect(Config{
		Nodes: []string{"a", "b"}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, CallTimeout: 300 * time.Millisecond,
		Dial: func(_ context.Context, node string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if len(asked) == 0 || asked[len(asked)-1] != node {
				asked = append(asked, node)
			}
			ours, theirs := net.Pipe()
			t.Cleanup(func() { _ = theirs.Close() })
			return ours, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if _, err := c.Members(t.Context()); fault.KindOf(err) != fault.Unreachable {
		t.Errorf("got %v", err)
	}
	if d := time.Since(begun); d > 30*time.Second {
		t.Errorf("it took %v", d)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"a", "b"}, asked); diff != "" {
		t.Error(diff)
	}
}
