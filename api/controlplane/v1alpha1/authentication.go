package v1alpha1

// Authentication configures the issuers of tokens that authenticate users.
type Authentication struct {
	// jwt are the issuers of tokens, for example OpenID Connect providers. The API server, a process on the host,
	// connects to them, so only issuers that the operator of the host allows can be used.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	JWT []JWTAuthenticator `json:"jwt,omitempty"`
}

// JWTAuthenticator has the fields of JWTAuthenticator of apiserver.config.k8s.io/v1, without those that refer to other
// addresses.
type JWTAuthenticator struct {
	// issuer is the issuer of the tokens.
	// +required
	Issuer JWTIssuer `json:"issuer,omitempty,omitzero"`

	// claimValidationRules are rules that the claims of a token must satisfy.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ClaimValidationRules []ClaimValidationRule `json:"claimValidationRules,omitempty"`

	// claimMappings determine the user from the claims of a token.
	// +required
	ClaimMappings ClaimMappings `json:"claimMappings,omitempty,omitzero"`

	// userValidationRules are rules that the user must satisfy.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	UserValidationRules []UserValidationRule `json:"userValidationRules,omitempty"`
}

// JWTIssuer is an issuer of tokens.
type JWTIssuer struct {
	// url is the issuer URL in tokens, with https. The keys of the issuer are discovered at
	// /.well-known/openid-configuration below it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	URL string `json:"url,omitempty"`

	// certificateAuthority are CA certificates in PEM format that verify the issuer's certificate. Defaults to the CA
	// certificates of the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CertificateAuthority string `json:"certificateAuthority,omitempty"`

	// audiences are the accepted audiences; a token must have at least one of them.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Audiences []string `json:"audiences,omitempty"`

	// audienceMatchPolicy must be MatchAny if there is more than one audience.
	// +optional
	// +kubebuilder:validation:Enum=MatchAny
	AudienceMatchPolicy string `json:"audienceMatchPolicy,omitempty"`
}

// ClaimValidationRule is a claim with a required value, or an expression.
// +kubebuilder:validation:MinProperties=1
type ClaimValidationRule struct {
	// claim is the name of a claim.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Claim string `json:"claim,omitempty"`

	// requiredValue is the required value of the claim.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequiredValue string `json:"requiredValue,omitempty"`

	// expression is a CEL expression with the variable claims, which must evaluate to true.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`

	// message is the error message if the expression evaluates to false.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// ClaimMappings determine the user from the claims of a token.
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

	// extra are additional attributes of the user.
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

	// prefix is prepended to the value of the claim; it is required with a claim, and may be empty.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=256
	Prefix *string `json:"prefix,omitempty"`

	// expression is a CEL expression with the variable claims.
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

	// expression is a CEL expression with the variable claims.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`
}

// ExtraMapping is an additional attribute of a user.
type ExtraMapping struct {
	// key is the name of the attribute, for example example.com/team.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key string `json:"key,omitempty"`

	// valueExpression is a CEL expression with the variable claims.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	ValueExpression string `json:"valueExpression,omitempty"`
}

// UserValidationRule is an expression that the user must satisfy.
type UserValidationRule struct {
	// expression is a CEL expression with the variable user, which must evaluate to true.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`

	// message is the error message if the expression evaluates to false.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
