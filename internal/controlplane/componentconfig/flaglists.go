package componentconfig

import (
	"maps"
	"time"
)

const (
	second, minute, hour, day = time.Second, time.Minute, time.Hour, 24 * time.Hour
	// verbosity is the highest log level. Above it, logs contain the bodies of requests, including Secrets.
	verbosity = 4
)

// common returns the flags that all Kubernetes components have.
func common() map[string]form {
	return map[string]form{"feature-gates": featureGates(), "v": integer(0, verbosity)}
}

// apiServerFlags returns the flags of kube-apiserver that a HostedControlPlane can set, with the limits of their
// values. It leaves out flags that would reach the host (files, sockets, URLs, addresses, other etcd clusters), flags
// that Slipway depends on (authentication, authorization, NodeRestriction), and flags that have no effect without a
// file. docs/hosted-control-plane.md has the same list (a test compares them). flagsOf (flags.go) calls it.
func apiServerFlags() map[string]form {
	out := common()
	maps.Copy(out, map[string]form{
		"default-not-ready-toleration-seconds":   integer(0, 30*24*3600),
		"default-unreachable-toleration-seconds": integer(0, 30*24*3600),
		"default-watch-cache-size":               integer(0, 1000),
		"delete-collection-workers":              integer(1, 16),
		"disable-admission-plugins": someOf("DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "DenyServiceExternalIPs", "LimitRanger",
			"PodSecurity", "Priority", "ResourceQuota", "RuntimeClass", "StorageObjectInUseProtection", "TaintNodesByCondition"),
		"enable-admission-plugins": someOf("AlwaysPullImages", "DenyServiceExternalIPs", "ExtendedResourceToleration",
			"LimitPodHardAntiAffinityTopology", "NamespaceAutoProvision", "NamespaceExists", "NodeRestriction",
			"OwnerReferencesPermissionEnforcement", "PodNodeSelector", "PodTolerationRestriction"),
		"enable-aggregator-routing":               boolean(),
		"enable-priority-and-fairness":            boolean(),
		"event-ttl":                               duration(minute, day),
		"goaway-chance":                           fraction(0, 0.02),
		"http2-max-streams-per-connection":        integer(1, 1000),
		"kubelet-preferred-address-types":         someOf("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"),
		"kubelet-timeout":                         duration(second, minute),
		"max-mutating-requests-inflight":          integer(1, 1000),
		"max-requests-inflight":                   integer(1, 2000),
		"min-request-timeout":                     integer(60, 7200),
		"request-timeout":                         duration(second, 10*minute),
		"runtime-config":                          matching("API groups and versions as group/version=true or false, separated by commas", `[a-z][a-z0-9.]{0,99}(?:/[a-z0-9]{1,30}){1,2}=(?:true|false)`),
		"service-account-extend-token-expiration": boolean(),
		"service-account-max-token-expiration":    duration(hour, 365*day),
		"service-node-port-range":                 portRange(),
		"tls-cipher-suites":                       matching("names of cipher suites, separated by commas", `TLS_[A-Z0-9_]{1,60}`),
		"tls-min-version":                         oneOf("VersionTLS12", "VersionTLS13"),
		"watch-cache":                             boolean(),
	})
	return out
}

// controllerManagerFlags returns the flags of kube-controller-manager that a HostedControlPlane can set. It leaves out
// files, directories, addresses, cloud providers and host volumes. flagsOf (flags.go) calls it.
func controllerManagerFlags() map[string]form {
	out := common()
	for _, objects := range []string{
		"cron-job", "daemonset", "deployment", "endpoint", "ephemeralvolume", "gc", "horizontal-pod-autoscaler", "job", "namespace",
		"replicaset", "resource-quota", "service", "service-endpoint", "serviceaccount-token", "statefulset", "ttl-after-finished",
	} {
		out["concurrent-"+objects+"-syncs"] = integer(1, 50)
	}
	maps.Copy(out, map[string]form{
		"allocate-node-cidrs":                                 boolean(),
		"attach-detach-reconcile-sync-period":                 duration(10*second, hour),
		"cluster-signing-duration":                            duration(hour, 365*day),
		"controllers":                                         matching("names of controllers, separated by commas, each with - before it to switch it off; * is all", `\*|-?[a-z][a-z0-9-]{0,62}`),
		"enable-garbage-collector":                            boolean(),
		"horizontal-pod-autoscaler-cpu-initialization-period": duration(0, hour),
		"horizontal-pod-autoscaler-downscale-stabilization":   duration(0, hour),
		"horizontal-pod-autoscaler-initial-readiness-delay":   duration(0, hour),
		"horizontal-pod-autoscaler-sync-period":               duration(5*second, hour),
		"horizontal-pod-autoscaler-tolerance":                 fraction(0, 10),
		"kube-api-burst":                                      integer(1, 500),
		"kube-api-qps":                                        fraction(1, 500),
		"large-cluster-size-threshold":                        integer(0, 100000),
		"legacy-service-account-token-clean-up-period":        duration(day, 3650*day),
		"max-endpoints-per-slice":                             integer(1, 1000),
		"node-cidr-mask-size":                                 integer(8, 128),
		"node-cidr-mask-size-ipv4":                            integer(8, 32),
		"node-cidr-mask-size-ipv6":                            integer(8, 128),
		"node-eviction-rate":                                  fraction(0, 100),
		"node-monitor-grace-period":                           duration(5*second, hour),
		"node-monitor-period":                                 duration(second, minute),
		"node-startup-grace-period":                           duration(5*second, hour),
		"pvclaimbinder-sync-period":                           duration(5*second, hour),
		"resource-quota-sync-period":                          duration(5*second, day),
		"secondary-node-eviction-rate":                        fraction(0, 100),
		"terminated-pod-gc-threshold":                         integer(1, 100000),
		"unhealthy-zone-threshold":                            fraction(0, 1),
	})
	return out
}

// schedulerFlags returns the flags of kube-scheduler that a HostedControlPlane can set. The list is short, because all
// other settings of the scheduler are in a configuration file. flagsOf (flags.go) calls it.
func schedulerFlags() map[string]form {
	out := common()
	out["pod-max-in-unschedulable-pods-duration"] = duration(10*second, day)
	return out
}

// etcdFlags returns the flags of etcd that a HostedControlPlane can set. It leaves out addresses, directories and flags
// that could cause data loss. flagsOf (flags.go) calls it.
func etcdFlags() map[string]form {
	return map[string]form{
		"auto-compaction-mode":      oneOf("periodic", "revision"),
		"auto-compaction-retention": matching("a number, or a duration in hours, minutes or seconds", `[0-9]{1,9}[hms]?`),
		"max-request-bytes":         integer(1<<20, 8<<20),
		"max-txn-ops":               integer(128, 10000),
		"quota-backend-bytes":       integer(64<<20, 8<<30),
		"snapshot-count":            integer(1000, 1000000),
		"warning-apply-duration":    duration(10*time.Millisecond, minute),
	}
}
