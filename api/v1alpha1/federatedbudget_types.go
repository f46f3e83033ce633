package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FederatedBudget is one limit per window that several clusters share. The
// objects with the same id in all of them are one budget; limits of
// RateLimitPolicies with scope Federated draw from it. When two in one cluster
// have the same id, the older counts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=federatedbudgets,singular=federatedbudget,shortName=fbud,categories=fleetlimits,scope=Namespaced
// +kubebuilder:selectablefield:JSONPath=`.spec.id`
// +kubebuilder:printcolumn:name="Limit",type=string,JSONPath=`.status.summary.limit`,description="Units per window of each rate, over all clusters"
// +kubebuilder:printcolumn:name="Members",type=string,JSONPath=`.status.summary.members`,description="Members that the coordinator heard of lately / members"
// +kubebuilder:printcolumn:name="Granted",type=string,JSONPath=`.status.summary.granted`,description="Part of the limit that was granted in the last window measured"
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.summary.used`,description="Part of the limit that all clusters admitted in that window"
// +kubebuilder:printcolumn:name="Overshoot",type=string,JSONPath=`.status.summary.overshoot`,description="Admitted beyond the limit in the last window measured ≤ what the configuration guarantees; ? when a newer window is over"
// +kubebuilder:printcolumn:name="Unused",type=string,JSONPath=`.status.summary.unused`,description="Part of the limit that was there while requests were refused, in the last window measured"
// +kubebuilder:printcolumn:name="Root",type=string,JSONPath=`.status.summary.root`,description="Coordinator that divides the limit"
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].status`,description="Whether this cluster reaches the coordinator"
// +kubebuilder:printcolumn:name="Accepted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether the budget is valid, and no older one has its id"
// +kubebuilder:printcolumn:name="ID",type=string,priority=1,JSONPath=`.spec.id`,description="The same in all clusters"
// +kubebuilder:printcolumn:name="Self",type=string,priority=1,JSONPath=`.status.self`,description="The member that this cluster is"
// +kubebuilder:printcolumn:name="Allocation",type=string,priority=1,JSONPath=`.spec.allocation`,description="How the limit is divided"
// +kubebuilder:printcolumn:name="InBound",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="WithinBound")].status`,description="Whether every window measured stayed within the bound"
// +kubebuilder:printcolumn:name="Learning",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Learning")].status`,description="Whether the coordinator has lost its memory and grants nothing of the open window"
// +kubebuilder:printcolumn:name="Units/Lease",type=string,priority=1,JSONPath=`.status.summary.unitsPerLease`,description="Units per round trip from this cluster to the coordinator"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FederatedBudget struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the clusters share, and how this one takes part.
	// +required
	Spec FederatedBudgetSpec `json:"spec"`

	// status is what this cluster knows of the budget.
	// +optional
	// +kubebuilder:default={}
	Status FederatedBudgetStatus `json:"status,omitzero"`
}

// FederatedBudgetList is a list of FederatedBudget objects.
//
// +kubebuilder:object:root=true
type FederatedBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FederatedBudget `json:"items"`
}

// FederatedBudgetSpec is the budget that the clusters share, and how this one
// takes part. Id, rate.window, the windows of additionalRates and key have to be
// the same in all of them. For limits, members, allocation, key.maxKeys and
// key.overrides, the hub's values count where there is a hub.
// +kubebuilder:validation:XValidation:rule="self.members.map(m, m.nominal).sum() <= self.rate.limit",fieldPath=".members",message="the nominal of all members add up to more than rate.limit: lower some of them, or raise rate.limit"
// +kubebuilder:validation:XValidation:rule="!has(self.hub) || (self.coordinator.type == 'Kubernetes' && !has(self.coordinator.blockPercent))",fieldPath=".coordinator",reason=FieldValueForbidden,message="the hub keeps this budget by what its own object says: remove coordinator, or remove hub to keep or reach the budget from this cluster"
// +kubebuilder:validation:XValidation:rule="has(self.additionalRates) || self.onCoordinatorOutage.action != 'Nominal' || self.members.exists(m, m.nominal > 0 && (!has(m.lendingLimit) || m.lendingLimit < m.nominal))",fieldPath=".onCoordinatorOutage.action",message="action Nominal goes on with what members keep of their nominal, and none keeps any: set the nominal of members, with a lendingLimit below it or none, or set action to FailClosed"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.allocation == 'FirstCome'",fieldPath=".allocation",message="units of a value are for the member that asks first: set allocation to FirstCome, or remove key"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.members.all(m, m.weight == 1 && !has(m.borrowingLimit) && !has(m.lendingLimit))",fieldPath=".members",reason=FieldValueForbidden,message="units of a value are not divided by weight, borrowed or lent: remove weight, borrowingLimit and lendingLimit of all members, or remove key"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.onCoordinatorOutage.action == 'Nominal' || self.members.all(m, m.nominal == 0)",fieldPath=".members",reason=FieldValueForbidden,message="with a key a nominal is what a member keeps of each value to use without asking: remove the nominal of all members, or set onCoordinatorOutage.action to Nominal"
// +kubebuilder:validation:XValidation:rule="self.onCoordinatorOutage.action != 'Nominal' || !has(self.key) || !has(self.key.overrides) || self.key.overrides.all(o, self.members.map(m, m.nominal).sum() <= o.limit)",fieldPath=".key.overrides",message="members use their nominal of each value without asking, and all of them together more than an override allows: raise its limit to their sum, or lower the nominal of members"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.onCoordinatorOutage.action != 'RegionalOnly'",fieldPath=".onCoordinatorOutage.action",message="a value is granted what it uses, and nothing ahead of an outage: set action to FailClosed or Nominal, or remove key"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.onCoordinatorOutage.action != 'Nominal' || has(self.hub) || self.coordinator.type == 'Kubernetes'",fieldPath=".onCoordinatorOutage.action",message="only a hub keeps what members use of each value without asking: set action to FailClosed, or keep the budget in a hub"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.escrow.type == 'Controller'",fieldPath=".escrow.type",message="the leading controller keeps what it was granted of each value: set type to Controller, or remove key"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || (self.batch.type == 'Adaptive' && self.batch.size == 16)",fieldPath=".batch",reason=FieldValueForbidden,message="a value is granted by how much it used before: remove batch, or remove key"
// +kubebuilder:validation:XValidation:rule="!has(self.additionalRates) || !self.rate.window.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || self.additionalRates.exists(r, !r.window.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')) || self.additionalRates.all(a, duration(a.window) != duration(self.rate.window) && self.additionalRates.exists_one(b, duration(a.window) == duration(b.window)))",fieldPath=".additionalRates",message="two rates have windows of the same length: keep the one with the smaller limit"
// +kubebuilder:validation:XValidation:rule="!has(self.additionalRates) || self.members.all(m, m.nominal == 0 && !has(m.borrowingLimit) && !has(m.lendingLimit))",fieldPath=".members",reason=FieldValueForbidden,message="nominal, borrowingLimit and lendingLimit are units of one rate, and there are several: remove them of all members, which share each rate by weight then, or remove additionalRates"
// +kubebuilder:validation:XValidation:rule="!has(self.additionalRates) || self.onCoordinatorOutage.action != 'Nominal'",fieldPath=".onCoordinatorOutage.action",message="members go on with a part of one rate, and there are several: set action to FailClosed or RegionalOnly, or remove additionalRates"
// +kubebuilder:validation:XValidation:rule="has(self.additionalRates) == has(oldSelf.additionalRates) && (!has(self.additionalRates) || self.additionalRates.exists(r, !r.window.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')) || (self.additionalRates.size() == oldSelf.additionalRates.size() && self.additionalRates.all(a, oldSelf.additionalRates.exists(b, duration(a.window) == duration(b.window)))))",fieldPath=".additionalRates",message="the windows of additionalRates cannot be changed, because what was granted before is not counted in others, and members that still draw without them would not be: set them back, and change limits only, or create a FederatedBudget with another id"
// +kubebuilder:validation:XValidation:rule="has(self.hub) || has(oldSelf.hub) || self.coordinator.type == 'Kubernetes' || has(self.key) == has(oldSelf.key)",fieldPath=".key",message="a Redis or Postgres counts the values of a key apart from a budget without one, so the open window would be granted a second time: set it back, or create a FederatedBudget with another id"
// +kubebuilder:validation:XValidation:rule="has(self.hub) || has(oldSelf.hub) || (self.coordinator.type == oldSelf.coordinator.type && (!has(self.coordinator.redis) || !has(oldSelf.coordinator.redis) || ((has(self.coordinator.redis.address) ? has(oldSelf.coordinator.redis.address) && self.coordinator.redis.address == oldSelf.coordinator.redis.address : !has(oldSelf.coordinator.redis.address)) && (has(self.coordinator.redis.sentinel) ? has(oldSelf.coordinator.redis.sentinel) && self.coordinator.redis.sentinel.primary == oldSelf.coordinator.redis.sentinel.primary && self.coordinator.redis.sentinel.addresses == oldSelf.coordinator.redis.sentinel.addresses : !has(oldSelf.coordinator.redis.sentinel)) && (has(self.coordinator.redis.cluster) ? has(oldSelf.coordinator.redis.cluster) && self.coordinator.redis.cluster.addresses == oldSelf.coordinator.redis.cluster.addresses : !has(oldSelf.coordinator.redis.cluster)) && (has(self.coordinator.redis.rest) ? has(oldSelf.coordinator.redis.rest) && self.coordinator.redis.rest.url == oldSelf.coordinator.redis.rest.url : !has(oldSelf.coordinator.redis.rest)))) && (!has(self.coordinator.postgres) || !has(oldSelf.coordinator.postgres) || (self.coordinator.postgres.address == oldSelf.coordinator.postgres.address && self.coordinator.postgres.database == oldSelf.coordinator.postgres.database)))",fieldPath=".coordinator",message="the coordinator cannot be changed, because members that still ask the old one would be granted the window a second time: set it back, or delete the budget in every cluster and create it again"
type FederatedBudgetSpec struct {
	// id joins the objects of the clusters to one budget: 1 to 128 lower-case
	// letters, digits, dashes and dots, in parts that slashes separate, such as
	// shop/checkout. Unless an administrator decides otherwise, it begins with the
	// namespace and a slash. It cannot be changed.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)*$')",message="not an id: use lower-case letters, digits, dashes and dots, in parts that slashes separate, such as shop/checkout"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the id cannot be changed, because the other clusters know the budget by it: set it back, or create another FederatedBudget"
	ID string `json:"id"`

	// rate is the limit over all clusters together.
	// +required
	Rate BudgetRate `json:"rate"`

	// additionalRates are 1 to 3 further limits in windows of other lengths, such
	// as 10000 in 24h beside 100 in 1s. All rates have to admit a request: it is
	// charged to all of them or to none. Members share each by weight.
	// Their windows cannot be changed, nor rates be added or removed; limits can
	// be changed. Absent: rate is the only one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	AdditionalRates []BudgetRate `json:"additionalRates,omitempty"`

	// key gives each value of its parts the whole limit, over all clusters
	// together. Limits that draw from the budget count by it, and have no key of
	// their own. It needs allocation FirstCome.
	// Absent: one limit for all requests.
	// +optional
	Key *BudgetKey `json:"key,omitempty"`

	// members are the clusters that share the budget, 1 to 64. Each names itself
	// by the flag --cluster-name of its controller.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Members []BudgetMember `json:"members"`

	// allocation says how much of a window a member may get. Its floor is its
	// nominal and its part, by weight, of the limit beyond all nominal shares.
	// FairShare, the default, keeps for each member the units it wants up to its
	// floor; members that ask for more get the units that others do not want.
	// FirstCome keeps only what members never lend.
	// Static gives each member its floor and no more.
	// +optional
	// +kubebuilder:default=FairShare
	Allocation BudgetAllocation `json:"allocation,omitempty"`

	// hub is the cluster that keeps the budget. Absent on the hub itself, and
	// where all members reach a coordinator of type Redis or Postgres.
	// +optional
	Hub *BudgetHub `json:"hub,omitempty"`

	// coordinator says where the budget is kept without a hub. Default: in this
	// cluster, which is the hub of the others then.
	// It cannot be changed; only tls, secretRef and blockPercent can.
	// +optional
	// +kubebuilder:default={type: Kubernetes}
	Coordinator BudgetCoordinator `json:"coordinator,omitzero"`

	// escrow says where this cluster keeps what it was granted. Default: in its
	// leading controller.
	// +optional
	// +kubebuilder:default={type: Controller}
	Escrow BudgetEscrow `json:"escrow,omitzero"`

	// batch says how much this cluster asks for at once. Default: Adaptive.
	// +optional
	// +kubebuilder:default={type: Adaptive, size: 16}
	Batch BudgetBatch `json:"batch,omitzero"`

	// onCoordinatorOutage says what this cluster does while the coordinator does
	// not answer. Default: FailClosed.
	// +optional
	// +kubebuilder:default={action: FailClosed}
	OnCoordinatorOutage OnBudgetOutage `json:"onCoordinatorOutage,omitzero"`
}
