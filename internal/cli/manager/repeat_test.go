package manager

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/manager"
)

// What status and down show starts the manager again as it was.
func TestCommandToRepeat(t *testing.T) {
	variables := map[string]string{"KUBECONFIG": "/a b/kubeconfig"}
	e := env.Env{Getenv: func(name string) string { return variables[name] }}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":    {nil, "KUBECONFIG='/a b/kubeconfig' slipway manager"},
		"flags":      {[]string{"--kubeconfig", "it's", "--feature-gates", "ClusterTopology=true,RuntimeSDK=false", "--providers", "cluster-api,infrastructure-local", "--leader-elect"}, "slipway manager --feature-gates=ClusterTopology=true,RuntimeSDK=false '--kubeconfig=it'\\''s' --leader-elect=true --providers=cluster-api,infrastructure-local"},
		"normalized": {[]string{"--kubeconfig=k", "--webhook_port=9000"}, "slipway manager --kubeconfig=k --webhook-port=9000"},
	} {
		t.Run(name, func(t *testing.T) {
			gates, err := manager.NewGates()
			if err != nil {
				t.Fatal(err)
			}
			o, flags := &options{concurrency: map[string]*int{}, gates: gates}, pflag.NewFlagSet("manager", pflag.ContinueOnError)
			o.bind(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			flags.Visit(func(f *pflag.Flag) { o.set = append(o.set, f) })
			if got := o.command(e); got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}
