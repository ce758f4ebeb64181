package api

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// joinConfiguration is the JoinConfiguration of both API versions. Fields that exist in only one of them are marked.
// The structs in this file have the field names of kubeadm's API, which kubeadm parses on the machine and which
// therefore must not change. [MarshalInit] and [MarshalJoin] fill them in; a new field of kubeadm needs a field here
// and its conversion there.
type joinConfiguration struct {
	APIVersion       apiVersion        `json:"apiVersion"`
	Kind             string            `json:"kind"`
	NodeRegistration nodeRegistration  `json:"nodeRegistration"`
	CACertPath       string            `json:"caCertPath,omitempty"`
	Discovery        discovery         `json:"discovery"`
	ControlPlane     *joinControlPlane `json:"controlPlane,omitempty"`
	SkipPhases       []string          `json:"skipPhases,omitempty"`
	Patches          *patches          `json:"patches,omitempty"`
	Timeouts         *timeouts         `json:"timeouts,omitempty"` // v1beta4
}

// nodeRegistration contains NodeRegistrationOptions. Taints has no omitempty: null selects kubeadm's default, and an
// empty list selects no taints.
type nodeRegistration struct {
	Name                  string            `json:"name,omitempty"`
	CRISocket             string            `json:"criSocket,omitempty"`
	Taints                []corev1.Taint    `json:"taints"`
	KubeletExtraArgs      any               `json:"kubeletExtraArgs,omitempty"` // map in v1beta3, []arg in v1beta4
	IgnorePreflightErrors []string          `json:"ignorePreflightErrors,omitempty"`
	ImagePullPolicy       corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	ImagePullSerial       *bool             `json:"imagePullSerial,omitempty"` // v1beta4
}

// arg is one command line argument. Names may be repeated. The arguments of v1beta4 have this form.
type arg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type discovery struct {
	BootstrapToken    *bootstrapTokenDiscovery `json:"bootstrapToken,omitempty"`
	File              *fileDiscovery           `json:"file,omitempty"`
	TLSBootstrapToken string                   `json:"tlsBootstrapToken,omitempty"`
	Timeout           *metav1.Duration         `json:"timeout,omitempty"` // v1beta3
}

type bootstrapTokenDiscovery struct {
	Token                    string   `json:"token"`
	APIServerEndpoint        string   `json:"apiServerEndpoint,omitempty"`
	CACertHashes             []string `json:"caCertHashes,omitempty"`
	UnsafeSkipCAVerification bool     `json:"unsafeSkipCAVerification,omitempty"`
}

type fileDiscovery struct {
	KubeConfigPath string `json:"kubeConfigPath"`
}

type joinControlPlane struct {
	LocalAPIEndpoint *apiEndpoint `json:"localAPIEndpoint,omitempty"`
}

type apiEndpoint struct {
	AdvertiseAddress string `json:"advertiseAddress,omitempty"`
	BindPort         int32  `json:"bindPort,omitempty"`
}

type patches struct {
	Directory string `json:"directory,omitempty"`
}

// timeouts only exists in v1beta4.
type timeouts struct {
	ControlPlaneComponentHealthCheck *metav1.Duration `json:"controlPlaneComponentHealthCheck,omitempty"`
	KubeletHealthCheck               *metav1.Duration `json:"kubeletHealthCheck,omitempty"`
	KubernetesAPICall                *metav1.Duration `json:"kubernetesAPICall,omitempty"`
	EtcdAPICall                      *metav1.Duration `json:"etcdAPICall,omitempty"`
	TLSBootstrap                     *metav1.Duration `json:"tlsBootstrap,omitempty"`
	Discovery                        *metav1.Duration `json:"discovery,omitempty"`
}

// clusterConfiguration is the ClusterConfiguration of both API versions. Fields that exist in only one of them are
// marked. [MarshalInit] fills it in, and [StoredConfiguration.ApplyConfiguration] takes the values that it changes from
// it.
type clusterConfiguration struct {
	APIVersion                  apiVersion       `json:"apiVersion"`
	Kind                        string           `json:"kind"`
	ClusterName                 string           `json:"clusterName,omitempty"`
	KubernetesVersion           string           `json:"kubernetesVersion,omitempty"`
	ControlPlaneEndpoint        string           `json:"controlPlaneEndpoint,omitempty"`
	Networking                  networking       `json:"networking"`
	Etcd                        etcd             `json:"etcd"`
	APIServer                   apiServer        `json:"apiServer"`
	ControllerManager           component        `json:"controllerManager"`
	Scheduler                   component        `json:"scheduler"`
	DNS                         image            `json:"dns"`
	CertificatesDir             string           `json:"certificatesDir,omitempty"`
	ImageRepository             string           `json:"imageRepository,omitempty"`
	FeatureGates                map[string]bool  `json:"featureGates,omitempty"`
	EncryptionAlgorithm         string           `json:"encryptionAlgorithm,omitempty"`         // v1beta4
	CertificateValidityPeriod   *metav1.Duration `json:"certificateValidityPeriod,omitempty"`   // v1beta4
	CACertificateValidityPeriod *metav1.Duration `json:"caCertificateValidityPeriod,omitempty"` // v1beta4
}

type networking struct {
	ServiceSubnet string `json:"serviceSubnet,omitempty"`
	PodSubnet     string `json:"podSubnet,omitempty"`
	DNSDomain     string `json:"dnsDomain,omitempty"`
}

type etcd struct {
	Local    *localEtcd    `json:"local,omitempty"`
	External *externalEtcd `json:"external,omitempty"`
}

type localEtcd struct {
	image
	DataDir        string          `json:"dataDir,omitempty"`
	ExtraArgs      any             `json:"extraArgs,omitempty"` // map in v1beta3, []arg in v1beta4
	ExtraEnvs      []corev1.EnvVar `json:"extraEnvs,omitempty"` // v1beta4
	ServerCertSANs []string        `json:"serverCertSANs,omitempty"`
	PeerCertSANs   []string        `json:"peerCertSANs,omitempty"`
}

type externalEtcd struct {
	Endpoints []string `json:"endpoints"`
	CAFile    string   `json:"caFile"`
	CertFile  string   `json:"certFile"`
	KeyFile   string   `json:"keyFile"`
}

type image struct {
	ImageRepository string `json:"imageRepository,omitempty"`
	ImageTag        string `json:"imageTag,omitempty"`
}

type component struct {
	ExtraArgs    any             `json:"extraArgs,omitempty"` // map in v1beta3, []arg in v1beta4
	ExtraVolumes []hostPathMount `json:"extraVolumes,omitempty"`
	ExtraEnvs    []corev1.EnvVar `json:"extraEnvs,omitempty"` // v1beta4
}

type apiServer struct {
	component
	CertSANs               []string         `json:"certSANs,omitempty"`
	TimeoutForControlPlane *metav1.Duration `json:"timeoutForControlPlane,omitempty"` // v1beta3
}

type hostPathMount struct {
	Name      string              `json:"name"`
	HostPath  string              `json:"hostPath"`
	MountPath string              `json:"mountPath"`
	ReadOnly  bool                `json:"readOnly,omitempty"`
	PathType  corev1.HostPathType `json:"pathType,omitempty"`
}

// initConfiguration is the InitConfiguration of both API versions. [MarshalInit] fills it in.
type initConfiguration struct {
	APIVersion       apiVersion       `json:"apiVersion"`
	Kind             string           `json:"kind"`
	BootstrapTokens  []bootstrapToken `json:"bootstrapTokens,omitempty"`
	NodeRegistration nodeRegistration `json:"nodeRegistration"`
	LocalAPIEndpoint *apiEndpoint     `json:"localAPIEndpoint,omitempty"`
	SkipPhases       []string         `json:"skipPhases,omitempty"`
	Patches          *patches         `json:"patches,omitempty"`
	Timeouts         *timeouts        `json:"timeouts,omitempty"` // v1beta4
}

type bootstrapToken struct {
	Token       string           `json:"token"`
	Description string           `json:"description,omitempty"`
	TTL         *metav1.Duration `json:"ttl,omitempty"`
	Expires     *metav1.Time     `json:"expires,omitempty"`
	Usages      []string         `json:"usages,omitempty"`
	Groups      []string         `json:"groups,omitempty"`
}
