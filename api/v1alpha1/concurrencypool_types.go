package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConcurrencyPool bounds how many requests a set of pods has in flight
// together, by one limit that follows from their latency. Up to 8 pools apply
// to a pod, one of them without match: of several that select it the oldest.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=concurrencypools,singular=concurrencypool,shortName=cpool,categories=fleetlimits,scope=Namespaced
// +kubebuilder:selectablefield:JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`,description="Enforce refuses requests, Shadow only counts what it would refuse"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.summary.pods`,description="Pods that acknowledged this generation / pods the pool applies to"
// +kubebuilder:printcolumn:name="Limit",type=string,JSONPath=`.status.summary.limit`,description="Requests that the pods may have in flight together"
// +kubebuilder:printcolumn:name="InFlight",type=string,JSONPath=`.status.summary.inFlight`,description="Requests that the pods had in flight when they were last asked"
// +kubebuilder:printcolumn:name="Overshoot",type=string,JSONPath=`.status.summary.overshoot`,description="Requests in flight beyond the limit, at most ≤ what the configuration guarantees"
// +kubebuilder:printcolumn:name="Unused",type=string,JSONPath=`.status.summary.unused`,description="Part of the limit that was free while requests were refused"
// +kubebuilder:printcolumn:name="Latency",type=string,JSONPath=`.status.summary.latency`,description="Of the backend now / without load"
// +kubebuilder:printcolumn:name="Saturated",type=string,JSONPath=`.status.summary.saturated`,description="Whether requests find no slot and which end of its range the limit is at, or Unreachable when pods get no answer from the coordinator"
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`,description="Whether sidecars acknowledged this generation"
// +kubebuilder:printcolumn:name="Accepted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether the pool is valid, and no older one takes its place in pods that it selects"
// +kubebuilder:printcolumn:name="Algorithm",type=string,priority=1,JSONPath=`.spec.algorithm.type`,description="How the limit follows from latency"
// +kubebuilder:printcolumn:name="InBound",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="WithinBound")].status`,description="Whether what was in flight stayed within the bound"
// +kubebuilder:printcolumn:name="Coordinator",type=string,priority=1,JSONPath=`.spec.coordinator.type`,description="Coordinator that divides the limit"
// +kubebuilder:printcolumn:name="Reachable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="CoordinatorReachable")].status`,description="Whether every sidecar reaches the coordinator"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ConcurrencyPool struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the selected pods enforce.
	// +required
	Spec ConcurrencyPoolSpec `json:"spec"`

	// status is what the fleet acknowledged and what was measured there.
	// +optional
	// +kubebuilder:default={}
	Status ConcurrencyPoolStatus `json:"status,omitzero"`
}

// ConcurrencyPoolList is a list of ConcurrencyPool objects.
//
// +kubebuilder:object:root=true
type ConcurrencyPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ConcurrencyPool `json:"items"`
}

// ConcurrencyPoolSpec is what the selected pods enforce.
// +kubebuilder:validation:XValidation:rule="self.algorithm.type != 'Fixed' || !has(self.limit.min)",fieldPath=".limit.min",reason=FieldValueForbidden,message="with algorithm Fixed the limit is max and never moves: remove min, or set algorithm.type to Gradient2"
// +kubebuilder:validation:XValidation:rule="self.algorithm.type != 'Fixed' || !has(self.limit.initial)",fieldPath=".limit.initial",reason=FieldValueForbidden,message="with algorithm Fixed the limit is max from the start: remove initial, or set algorithm.type to Gradient2"
// +kubebuilder:validation:XValidation:rule="!has(self.selfFence.margin) || ![self.selfFence.margin, self.heartbeat.leaseTTL, self.heartbeat.interval].all(d, d.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')) || duration(self.heartbeat.leaseTTL) <= duration(self.heartbeat.interval) || duration(self.selfFence.margin) < duration(self.heartbeat.leaseTTL) - duration(self.heartbeat.interval)",fieldPath=".selfFence.margin",message="margin is not shorter than heartbeat.leaseTTL − heartbeat.interval, so a pod would stop before its next beat could renew its share: shorten margin, or raise heartbeat.leaseTTL, which cannot be undone"
// +kubebuilder:validation:XValidation:rule="self.allocation != 'DemandProportional' || !has(self.partitions) || !self.partitions.exists(p, p.guaranteedPercent > 0)",fieldPath=".allocation",message="allocation DemandProportional gives more to pods that use all they have, but what partitions keep by guaranteedPercent may stay unused, so no pod would get more: set allocation to EqualSplit, or remove guaranteedPercent from partitions"
type ConcurrencyPoolSpec struct {
	// podSelector selects the pods of this namespace that share the limit. An
	// empty selector, {}, selects every pod. A selected pod enforces only when it
	// carries the sidecar. Among several pools without match the oldest applies to
	// a pod, and among more than 8 pools the oldest 8.
	// +required
	PodSelector metav1.LabelSelector `json:"podSelector"`

	// match selects the requests that need a slot of the pool: those that one of
	// the entries matches. Absent: every request. A request that several pools
	// match needs a slot of each. With algorithms that infer the limit, pools
	// should match requests of different backends. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="!self.exists(m, has(m.descriptors))",reason=FieldValueForbidden,message="descriptors are of calls of the rate limit service, which need no slot: remove them, or move them to a RateLimitPolicy"
	Match []Match `json:"match,omitempty"`

	// mode says what happens to a request that finds no slot.
	// Enforce, the default, refuses it, or lets it wait in the queue.
	// Shadow counts it and lets it pass, so nothing bounds what is in flight.
	// +optional
	// +kubebuilder:default=Enforce
	Mode PolicyMode `json:"mode,omitempty"`

	// limit is the range of the limit: how many requests the pods may have in
	// flight together.
	// +required
	Limit PoolLimit `json:"limit"`

	// algorithm says how the limit follows from latency. Default: Gradient2.
	// +optional
	// +kubebuilder:default={type: Gradient2}
	Algorithm PoolAlgorithm `json:"algorithm,omitzero"`

	// aggregate says how the limit follows from what single pods infer. Each
	// infers what the one backend bears, so it is never their sum.
	// Median, the default, takes the lower median: one odd pod moves nothing.
	// Min takes the smallest: the most careful pod decides.
	// +optional
	// +kubebuilder:default=Median
	Aggregate Aggregate `json:"aggregate,omitempty"`

	// allocation says which share of the limit a pod is meant to have.
	// EqualSplit, the default, gives all pods the same.
	// DemandProportional splits what idle pods leave over those that use theirs
	// up. No partition may have a guaranteedPercent then: slots that are kept for
	// requests which do not come would make a busy pod look idle.
	// +optional
	// +kubebuilder:default=EqualSplit
	Allocation Allocation `json:"allocation,omitempty"`

	// handoff says when slots that one pod gave up may be granted to another.
	// Acknowledged, the default, waits until the pod confirmed its smaller share
	// and has no more than it in flight. The requests in flight then never exceed
	// the limit.
	// Occupancy waits only for the pod's report of requests in flight, which fills
	// a joining pod's share a heartbeat sooner. The requests in flight may then
	// exceed the limit for about a heartbeat.
	// +optional
	// +kubebuilder:default=Acknowledged
	Handoff Handoff `json:"handoff,omitempty"`

	// heartbeat says how often pods ask for their share, and how long one lasts.
	// +optional
	// +kubebuilder:default={interval: "1s", leaseTTL: "2s", eager: Enabled}
	Heartbeat Heartbeat `json:"heartbeat,omitzero"`

	// selfFence says how a pod stops that could not renew its share.
	// +optional
	// +kubebuilder:default={onFenced: Drain}
	SelfFence SelfFence `json:"selfFence,omitzero"`

	// onCoordinatorOutage says what a pod does whose share has expired because the
	// coordinator does not answer. Default: FailClosed.
	// +optional
	// +kubebuilder:default={action: FailClosed}
	OnCoordinatorOutage OnCoordinatorOutage `json:"onCoordinatorOutage,omitzero"`

	// coordinator divides the limit. Default: the leading controller, which hands
	// the pool over to the next in good order. After a crash of it pods are fenced
	// once their shares expire, until another leads; that one then only confirms
	// what is in use for one leaseTTL.
	// It cannot be changed, because the new one would not know which shares of the
	// old one are in use; only tls and secretRef can.
	// +optional
	// +kubebuilder:default={type: Controller}
	// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type && (!has(self.redis) || !has(oldSelf.redis) || ((has(self.redis.address) ? has(oldSelf.redis.address) && self.redis.address == oldSelf.redis.address : !has(oldSelf.redis.address)) && (has(self.redis.sentinel) ? has(oldSelf.redis.sentinel) && self.redis.sentinel.primary == oldSelf.redis.sentinel.primary && self.redis.sentinel.addresses == oldSelf.redis.sentinel.addresses : !has(oldSelf.redis.sentinel)) && (has(self.redis.cluster) ? has(oldSelf.redis.cluster) && self.redis.cluster.addresses == oldSelf.redis.cluster.addresses : !has(oldSelf.redis.cluster)) && (has(self.redis.rest) ? has(oldSelf.redis.rest) && self.redis.rest.url == oldSelf.redis.rest.url : !has(oldSelf.redis.rest)))) && (!has(self.postgres) || !has(oldSelf.postgres) || (self.postgres.address == oldSelf.postgres.address && self.postgres.database == oldSelf.postgres.database))",message="the coordinator cannot be changed, because the new one would not know which shares of the old one are in use: set it back, or delete the pool, wait for heartbeat.leaseTTL and create it again"
	Coordinator Store `json:"coordinator,omitzero"`

	// exempt takes requests out of those that match selects: what one of the
	// entries matches needs no slot and is never refused by the pool. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="!self.exists(m, has(m.descriptors))",reason=FieldValueForbidden,message="descriptors are of calls of the rate limit service, which need no slot: remove them, or move them to a RateLimitPolicy"
	Exempt []Match `json:"exempt,omitempty"`

	// key gives the requests of each value, such as those of a tenant or of a
	// model, a limit of their own. A request needs a slot of its value and one of
	// the pool. Absent: only the pool has a limit.
	// +optional
	Key *PoolKey `json:"key,omitempty"`

	// partitions keep parts of every pod's share for some requests, also while
	// these do not use them. A request belongs to the first that matches it. At
	// most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.name == b.name))",message="two partitions have the same name: rename one of them"
	// +kubebuilder:validation:XValidation:rule="self.map(p, p.guaranteedPercent).sum() <= 100",message="the guaranteedPercent of all partitions add up to more than 100: lower some of them"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.filter(p, !has(p.match)).size() == (has(self[self.size() - 1].match) ? 0 : 1)",message="a partition without match takes every request, so those behind it get none: move it to the end, or set its match"
	Partitions []Partition `json:"partitions,omitempty"`

	// queue lets requests wait for a slot of the pool in their pod, first come
	// first served. Those that wait for one of their value have key.queue.
	// Absent: a request that finds none is refused at once.
	// +optional
	Queue *Queue `json:"queue,omitempty"`

	// response says how requests that find no slot are refused. Default: 503.
	// +optional
	// +kubebuilder:default={statusCode: 503}
	Response PoolResponse `json:"response,omitzero"`
}
