package etcd

import (
	"cmp"
	"context"
	"errors"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipwayhq/slipway/internal/fault"
)

// call sends one call to the member on a Node, with CallTimeout. All methods of [Cluster] that call etcd use it.
func (c *cluster) call(ctx context.Context, node string, do func(context.Context, *clientv3.Client) error) error {
	client, err := c.client(node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	if err := do(ctx, client); err != nil {
		return asFault(node, err)
	}
	return nil
}

// callAny tries the call on one Node after the other until a member responds. It skips the Node in except.
func (c *cluster) callAny(ctx context.Context, except string, do func(context.Context, *clientv3.Client) error) error {
	err := error(fault.New(fault.Unreachable, "NoEtcdMember", "no Node with another etcd member is known"))
	for _, node := range c.cfg.Nodes {
		if node == except {
			continue
		}
		if err = c.call(ctx, node, do); err == nil || fault.KindOf(err) != fault.Unreachable || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// Members implements Cluster.
func (c *cluster) Members(ctx context.Context) ([]Member, error) {
	var out []Member
	err := c.callAny(ctx, "", func(ctx context.Context, client *clientv3.Client) error {
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		alarms, err := client.AlarmList(ctx)
		if err != nil {
			return err
		}
		out = members(list.Members, alarms.Alarms)
		return nil
	})
	return out, err
}

// Status implements Cluster.
func (c *cluster) Status(ctx context.Context, node string) (Status, error) {
	var out Status
	err := c.call(ctx, node, func(ctx context.Context, client *clientv3.Client) error {
		list, err := client.MemberList(ctx, clientv3.WithSerializable())
		if err != nil {
			return err
		}
		got, err := statusOf(ctx, client)
		if err != nil {
			return err
		}
		out = Status{
			ID: got.Header.GetMemberId(), ClusterID: got.Header.GetClusterId(), Leader: got.Leader, Version: got.Version,
			Learner: got.IsLearner, Errors: slices.Sorted(slices.Values(got.Errors)),
			Members: members(list.Members, nil),
		}
		return nil
	})
	return out, err
}

// statusOf reads the status of a member over the existing connection of the client. The client's own Status method
// would open a new connection for each call.
func statusOf(ctx context.Context, client *clientv3.Client) (*clientv3.StatusResponse, error) {
	over := pb.NewMaintenanceClient(client.ActiveConnection())
	return clientv3.NewMaintenanceFromMaintenanceClient(over, client).Status(ctx, client.Endpoints()[0])
}

// MoveLeader implements Cluster. Only the current leader can transfer leadership, so the members are searched for it
// first.
func (c *cluster) MoveLeader(ctx context.Context, to uint64) error {
	err := error(fault.New(fault.Unreachable, "EtcdLeaderUnknown", "the etcd leader does not run on a known Node"))
	for _, node := range c.cfg.Nodes {
		s, failed := c.Status(ctx, node)
		switch {
		case failed != nil:
			err = failed
		case s.Leader == to:
			return nil
		case s.Leader == s.ID:
			return c.call(ctx, node, func(ctx context.Context, client *clientv3.Client) error {
				_, err := client.MoveLeader(ctx, to)
				return err
			})
		}
		if ctx.Err() != nil {
			return err
		}
	}
	return err
}

// RemoveMember implements Cluster.
func (c *cluster) RemoveMember(ctx context.Context, id uint64) error {
	list, err := c.Members(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(m Member) bool { return m.ID == id })
	if at < 0 {
		return nil
	}
	return c.callAny(ctx, list[at].Name, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberRemove(ctx, id)
		if errors.Is(err, rpctypes.ErrMemberNotFound) {
			return nil
		}
		return err
	})
}

func members(list []*pb.Member, alarms []*pb.AlarmMember) []Member {
	var out []Member
	for _, m := range list {
		one := Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, Learner: m.IsLearner}
		for _, a := range alarms {
			if a.MemberID == m.ID && a.Alarm != pb.AlarmType_NONE {
				one.Alarms = append(one.Alarms, a.Alarm.String())
			}
		}
		slices.Sort(one.Alarms)
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// asFault classifies the error of a call by the kinds that [Cluster] documents. Calls that fail without a leader or do
// not reach etcd can be retried (Unreachable); calls that etcd rejects cannot (Invalid).
func asFault(node string, err error) error {
	if fault.As(err) != nil {
		return err
	}
	code := status.Code(err)
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		code = known.Code()
	}
	switch {
	case errors.Is(err, rpctypes.ErrNoLeader), errors.Is(err, rpctypes.ErrTimeout), errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail):
		return fault.New(fault.Unreachable, "EtcdNoLeader", "the etcd cluster has no leader").From(err)
	case code == codes.FailedPrecondition, code == codes.InvalidArgument, code == codes.NotFound, code == codes.PermissionDenied:
		return fault.New(fault.Invalid, "EtcdRefused", "the etcd member on Node %s rejects the request", node).From(err)
	}
	return fault.New(fault.Unreachable, "EtcdMemberUnreachable", "the etcd member on Node %s does not respond", node).From(err)
}
