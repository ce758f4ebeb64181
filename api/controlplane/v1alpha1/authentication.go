package v1alpha1

// Authentication says whose tokens identify users.
type Authentication struct {
	// jwt are the issuers of tokens, for example OpenID Connect providers. The API server, a process of the host, connects
	// to them: only those that the operator of the host allows can be used.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	JWT []JWTAuthenticator `json:"jwt,omitempty"`
}

// JWTAuthenticator has the fields of JWTAuthenticator of apiserver.config.k8s.io/v1, without those that lead elsewhere.
type JWTAuthenticator struct {
	// issuer is who signs the tokens.
	// +required
	Issuer JWTIssuer `json:"issuer,omitempty,omitzero"`

	// claimValidationRules have to hold for a token.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ClaimValidationRules []ClaimValidationRule `json:"claimValidationRules,omitempty"`

	// claimMappings say which user a token stands for.
	// +required
	ClaimMappings ClaimMappings `json:"claimMappings,omitempty,omitzero"`

	// userValidationRules have to hold for the user.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	UserValidationRules []UserValidationRule `json:"userValidationRules,omitempty"`
}

// JWTIssuer is who signs tokens.
type JWTIssuer struct {
	// url is the issuer as tokens name it, with https. Its keys are found below it, at /.well-known/openid-configuration.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	URL string `json:"url,omitempty"`

	// certificateAuthority are certificates in PEM form that the issuer's own is verified with. Defaults to those of the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CertificateAuthority string `json:"certificateAuthority,omitempty"`

	// audiences are for whom tokens are issued; a token has to have one of them.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Audiences []string `json:"audiences,omitempty"`

	// audienceMatchPolicy must be MatchAny where there is more than one audience.
	// +optional
	// +kubebuilder:validation:Enum=MatchAny
	AudienceMatchPolicy string `json:"audienceMatchPolicy,omitempty"`
}

// ClaimValidationRule is a claim with the value that it must have, or an expression.
// +kubebuilder:validation:MinProperties=1
type ClaimValidationRule struct {
	// claim is the name of a claim.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Claim string `json:"claim,omitempty"`

	// requiredValue is what the claim must be.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequiredValue string `json:"requiredValue,omitempty"`

	// expression is in CEL, of the variable claims; it must be true.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`

	// message is what is said where the expression is false.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// ClaimMappings say which user a token stands for.
type ClaimMappings struct {
	// username is the name of the user.
	// +required
	Username PrefixedClaimOrExpression `json:"username,omitempty,omitzero"`

	// groups are the groups of the user.
	// +optional
	Groups PrefixedClaimOrExpression `json:"groups,omitempty,omitzero"`

	// uid is the ID of the user.
	// +optional
	UID ClaimOrExpression `json:"uid,omitempty,omitzero"`

	// extra are further attributes of the user.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Extra []ExtraMapping `json:"extra,omitempty"`
}

// PrefixedClaimOrExpression is a claim with a prefix, or an expression.
// +kubebuilder:validation:MinProperties=1
type PrefixedClaimOrExpression struct {
	// claim is the name of a claim.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Claim string `json:"claim,omitempty"`

	// prefix is put before the value of the claim; it is required with a claim, and may be empty.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=256
	Prefix *string `json:"prefix,omitempty"`

	// expression is in CEL, of the variable claims.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`
}

// ClaimOrExpression is a claim or an expression.
// +kubebuilder:validation:MinProperties=1
type ClaimOrExpression struct {
	// claim is the name of a claim.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Claim string `json:"claim,omitempty"`

	// expression is in CEL, of the variable claims.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`
}

// ExtraMapping is a further attribute of a user.
type ExtraMapping struct {
	// key is the name of the attribute, for example example.com/team.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key string `json:"key,omitempty"`

	// valueExpression is in CEL, of the variable claims.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	ValueExpression string `json:"valueExpression,omitempty"`
}

// UserValidationRule is an expression that must hold for a user.
type UserValidationRule struct {
	// expression is in CEL, of the variable user; it must be true.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`

	// message is what is said where the expression is false.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
