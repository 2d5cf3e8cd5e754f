//! Special registers.

/// A register that a frame begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NWarpId,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    /// The position of the block's cluster in the grid of clusters, and the extents of that.
    ClusterId(u8),
    NClusterId(u8),
    /// The position of the block in its cluster, and the cluster's extents.
    ClusterCtaId(u8),
    ClusterNctaId(u8),
    ClusterCtaRank,
    ClusterNctaRank,
    /// The number of the multiprocessor: there is one.
    Zero,
    One,
    DynamicSharedSize,
    TotalSharedSize,
    /// The halves of the address of the workspace of a grid barrier.
    Workspace(bool),
}

impl Special {
    /// Whether it differs between the lanes of a warp.
    pub(crate) fn varies(self) -> bool {
        match self {
            Self::Tid(_)
            | Self::LaneId
            | Self::LaneMaskEq
            | Self::LaneMaskLe
            | Self::LaneMaskLt
            | Self::LaneMaskGe
            | Self::LaneMaskGt => true,
            Self::Ntid(_)
            | Self::Ctaid(_)
            | Self::Nctaid(_)
            | Self::WarpId
            | Self::NWarpId
            | Self::ClusterId(_)
            | Self::NClusterId(_)
            | Self::ClusterCtaId(_)
            | Self::ClusterNctaId(_)
            | Self::ClusterCtaRank
            | Self::ClusterNctaRank
            | Self::Zero
            | Self::One
            | Self::DynamicSharedSize
            | Self::TotalSharedSize
            | Self::Workspace(_) => false,
        }
    }
}

/// The register with a name, such as `%tid.x`.
pub(super) fn special(name: &str) -> Option<Special> {
    let axis = match name.rsplit('.').next() {
        Some("y") => 1,
        Some("z") => 2,
        _ => 0,
    };
    Some(match name.trim_end_matches(".x").trim_end_matches(".y").trim_end_matches(".z") {
        "%tid" => Special::Tid(axis),
        "%ntid" => Special::Ntid(axis),
        "%ctaid" => Special::Ctaid(axis),
        "%nctaid" => Special::Nctaid(axis),
        "%laneid" => Special::LaneId,
        "%warpid" => Special::WarpId,
        "%nwarpid" => Special::NWarpId,
        "%lanemask_eq" => Special::LaneMaskEq,
        "%lanemask_le" => Special::LaneMaskLe,
        "%lanemask_lt" => Special::LaneMaskLt,
        "%lanemask_ge" => Special::LaneMaskGe,
        "%lanemask_gt" => Special::LaneMaskGt,
        "%clusterid" => Special::ClusterId(axis),
        "%nclusterid" => Special::NClusterId(axis),
        "%cluster_ctaid" => Special::ClusterCtaId(axis),
        "%cluster_nctaid" => Special::ClusterNctaId(axis),
        "%cluster_ctarank" => Special::ClusterCtaRank,
        "%cluster_nctarank" => Special::ClusterNctaRank,
        "%smid" => Special::Zero,
        "%nsmid" => Special::One,
        "%dynamic_smem_size" => Special::DynamicSharedSize,
        "%total_smem_size" => Special::TotalSharedSize,
        "%envreg1" => Special::Workspace(true),
        "%envreg2" => Special::Workspace(false),
        _ => return None,
    })
}
