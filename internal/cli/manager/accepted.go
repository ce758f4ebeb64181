package manager

import (
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// bindAccepted binds the flags of the reference implementation's core manager that have nothing to set here. They are
// accepted, so that the arguments of an existing Deployment work as they are, and are not shown in the help.
func bindAccepted(f *pflag.FlagSet) {
	f.Duration("log-flush-frequency", 5*time.Second, "accepted without effect: the log is not buffered")
	f.String("etcd-client-log-level", "warn", "accepted without effect: what goes wrong with etcd is in conditions and in the log")
	f.String("vmodule", "", "accepted without effect: the log has one level for all files")
	for _, format := range []string{textFormat, jsonFormat} {
		f.Bool("log-"+format+"-split-stream", false, "accepted without effect: the log is one stream")
		size := &resource.QuantityValue{}
		f.Var(size, "log-"+format+"-info-buffer-size", "accepted without effect: the log is not buffered")
		hide(f, "log-"+format+"-split-stream", "log-"+format+"-info-buffer-size")
	}
	hide(f, "log-flush-frequency", "vmodule", "etcd-client-log-level")
}

func hide(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f.Lookup(name).Hidden = true
	}
}
