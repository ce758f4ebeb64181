package bootstrap

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// dataKey of the ConfigMap.
const dataKey = "lock-information"

// information is the JSON value of the key.
type information struct {
	MachineName string `json:"machineName"`
}

// InitLockState is the state of a Cluster's lock. The zero value is a free lock.
type InitLockState struct {
	// ConfigMap as read, or nil if it does not exist.
	ConfigMap *corev1.ConfigMap
	// Holder is the name of the Machine, or empty if the ConfigMap does not contain it.
	Holder string
	// HolderGone is true if the Machine does not exist.
	HolderGone bool
}

// Found reports whether the lock exists.
func (s InitLockState) Found() bool { return s.ConfigMap != nil }

// initLockName returns the name of the ConfigMap.
func initLockName(cluster string) string { return cluster + "-lock" }

// NewInitLock returns the lock of the Cluster, held by the Machine and owned by the Cluster.
func NewInitLock(cluster *clusterv1.Cluster, machine string) (*corev1.ConfigMap, error) {
	data, err := json.Marshal(information{MachineName: machine})
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidLock", "the name of Machine %s cannot be encoded", machine).From(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: initLockName(cluster.Name),
			Labels: map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: cluster.Name, UID: cluster.UID,
			}},
		},
		Data: map[string]string{dataKey: string(data)},
	}, nil
}

// InitLockStateOf reads the ConfigMap, which may be nil. The caller sets HolderGone.
func InitLockStateOf(lock *corev1.ConfigMap) InitLockState {
	if lock == nil {
		return InitLockState{}
	}
	var in information
	if err := json.Unmarshal([]byte(lock.Data[dataKey]), &in); err != nil {
		return InitLockState{ConfigMap: lock}
	}
	return InitLockState{ConfigMap: lock, Holder: in.MachineName}
}
