package manager

import (
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// bindAccepted binds hidden flags of Cluster API's core manager that have no effect here. The manager command accepts
// them, so that the arguments of an existing Deployment remain valid. options.bind calls it (manager.go).
func bindAccepted(f *pflag.FlagSet) {
	f.Duration("log-flush-frequency", 5*time.Second, "accepted without effect: the log is not buffered")
	f.String("etcd-client-log-level", "warn", "accepted without effect: problems with etcd are in conditions and in the log")
	f.String("vmodule", "", "accepted without effect: the log has one level for all files")
	for _, format := range []string{textFormat, jsonFormat} {
		f.Bool("log-"+format+"-split-stream", false, "accepted without effect: the log is one stream")
		size := &resource.QuantityValue{}
		f.Var(size, "log-"+format+"-info-buffer-size", "accepted without effect: the log is not buffered")
		hideFlags(f, "log-"+format+"-split-stream", "log-"+format+"-info-buffer-size")
	}
	hideFlags(f, "log-flush-frequency", "vmodule", "etcd-client-log-level")
}

func hideFlags(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f.Lookup(name).Hidden = true
	}
}
