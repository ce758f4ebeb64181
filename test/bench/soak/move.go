package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/pair"
	"github.com/slipwayhq/slipway/test/bench/settle"
	"github.com/slipwayhq/slipway/test/bench/template"
)

// away moves a cluster to the other management cluster and back. A move that is refused, because something fails now, is none.
func (s *soak) away(ctx context.Context, cluster int) error {
	name := template.Cluster(cluster)
	said, err := s.move(ctx, s.pair, s.other, name)
	if err != nil {
		begun, err2 := s.exists(ctx, s.other, name)
		if err2 != nil {
			return err2
		}
		if !begun {
			s.report.Refused++
			return nil
		}
		s.say("the move of %s was interrupted: %s", name, said)
		if err := s.moveAtLast(ctx, s.pair, s.other, name); err != nil {
			return err
		}
	}
	s.report.Moved++
	return s.moveAtLast(ctx, s.other, s.pair, name)
}

// moveAtLast repeats a move until it is over. It takes the cluster's faults back first: while they last no move begins, and nothing
// else does it where the cluster is now.
func (s *soak) moveAtLast(ctx context.Context, from, to *pair.Pair, name string) error {
	for began := time.Now(); ; {
		c, err := client.New(from.Config, client.Options{})
		if err == nil {
			err = s.healIn(ctx, c)
		}
		if err != nil {
			return err
		}
		said, err := s.move(ctx, from, to, name)
		if err == nil {
			return nil
		}
		if time.Since(began) > healWithin {
			return fmt.Errorf("moving %s: %w: %s", name, err, said)
		}
		if err := settle.Pause(ctx, between); err != nil {
			return err
		}
	}
}

func (s *soak) move(ctx context.Context, from, to *pair.Pair, name string) (string, error) {
	out, err := exec.CommandContext(ctx, s.binary, "move", "--kubeconfig", from.Kubeconfig(), "--to-kubeconfig", to.Kubeconfig(),
		"--namespace", s.template.Namespace, "--cluster", name).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (s *soak) exists(ctx context.Context, in *pair.Pair, name string) (bool, error) {
	c, err := client.New(in.Config, client.Options{})
	if err != nil {
		return false, err
	}
	o := s.template.Object(follow.Kind("Cluster"), name)
	err = c.Get(ctx, client.ObjectKeyFromObject(o), o)
	return err == nil, client.IgnoreNotFound(err)
}

// elsewhere looks for what is left in the other management cluster: nothing but what clusters share.
func (s *soak) elsewhere(ctx context.Context) error {
	c, err := client.New(s.other.Config, client.Options{})
	if err != nil {
		return err
	}
	var problems []error
	for _, gvk := range searched() {
		if gvk.Kind != "Cluster" && gvk.Kind != "Machine" && gvk.Kind != "LocalMachine" && gvk.Kind != "MachineDeployment" {
			continue
		}
		objects, err := listOf(ctx, c, gvk, client.InNamespace(s.template.Namespace))
		if err != nil {
			return err
		}
		for _, o := range objects {
			problems = append(problems, fmt.Errorf("%s %s is left in the other management cluster", o.GetKind(), o.GetName()))
		}
	}
	return errors.Join(problems...)
}
