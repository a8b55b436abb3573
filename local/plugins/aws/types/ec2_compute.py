"""Where instances are placed, and capacity held for them."""

from local.plugins.aws.row import Call, Name, Prop, Row, Update, Wait, fixed
from local.plugins.aws.run import Run
from local.plugins.aws.types.ec2 import DEPENDENTS, ec2_tags


def _modify_reservation(run: Run) -> None:
    """End date and its type go together, so both are sent whichever changed."""
    call = Call(op="ModifyCapacityReservation", by={"CapacityReservationId": "$id"})
    given = [name for name in ("instanceCount", "endDate", "endDateType", "instanceMatchCriteria") if run.inputs.get(name) is not None]
    params, sources = run.params(call, only=given)
    run.call("ModifyCapacityReservation", params, sources)


PLACEMENT_GROUP = Row(
    token="aws:ec2/placementGroup:PlacementGroup",
    service="ec2",
    create=Call(op="CreatePlacementGroup"),
    id="{name}",
    read=Call(op="DescribePlacementGroups", by={"GroupNames": ["$id"]}, result="PlacementGroups[?State!='deleted'] | [0]"),
    delete=Call(op="DeletePlacementGroup", by={"GroupName": "$id"}),
    retry_delete=DEPENDENTS,
    gone=("InvalidPlacementGroup.Unknown",),
    created=Wait(at="State", done=("available",)),
    deleted=Wait(at="State", done=("deleted",)),
    props={
        **fixed("name", param="GroupName"),
        **fixed("strategy"),
        **fixed("partitionCount", "spreadLevel", computed=True),
    },
    outputs={"arn": "GroupArn", "placementGroupId": "GroupId"},
    tags=ec2_tags("placement-group", "$placementGroupId"),
    name=Name(prefix_prop=""),
)

CAPACITY_RESERVATION = Row(
    token="aws:ec2/capacityReservation:CapacityReservation",
    service="ec2",
    create=Call(op="CreateCapacityReservation", result="CapacityReservation", token="ClientToken"),
    id="CapacityReservationId",
    read=Call(
        op="DescribeCapacityReservations",
        by={"CapacityReservationIds": ["$id"]},
        result="CapacityReservations[?State!='cancelled' && State!='expired'] | [0]",
    ),
    delete=Call(op="CancelCapacityReservation", by={"CapacityReservationId": "$id"}),
    gone=("InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationState"),
    created=Wait(at="State", done=("active", "scheduled", "assessing"), failed=("failed", "payment-failed", "unsupported")),
    deleted=Wait(at="State", done=("cancelled",)),
    props={
        **fixed("instanceType", "instancePlatform", "availabilityZone", "outpostArn", "placementGroupArn"),
        **fixed("ebsOptimized", "ephemeralStorage", default=False),
        **fixed("tenancy", default="default"),
        "instanceCount": Prop(read="TotalInstanceCount"),
        "instanceMatchCriteria": Prop(default="open"),
        "endDate": Prop(),
        "endDateType": Prop(default="unlimited"),
    },
    updates=[Update(takes=("instanceCount", "endDate", "endDateType", "instanceMatchCriteria"), run=_modify_reservation)],
    outputs={"arn": "CapacityReservationArn", "ownerId": "OwnerId"},
    tags=ec2_tags("capacity-reservation"),
)

ROWS = (PLACEMENT_GROUP, CAPACITY_RESERVATION)
