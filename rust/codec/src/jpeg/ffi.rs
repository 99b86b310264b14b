//! Declarations of `cpp/shims/jpeg_shim.h`.

use std::ffi::{c_char, c_int, c_void};

pub(super) const OK: c_int = 0;
pub(super) const DAMAGED: c_int = 1;
pub(super) const UNSUPPORTED: c_int = 2;
pub(super) const MEMORY: c_int = 3;
pub(super) const STOPPED: c_int = 4;
pub(super) const IRREGULAR: c_int = 6;
pub(super) const IMPOSSIBLE: c_int = 7;

pub(super) const COLOUR_CMYK: u32 = 1;

/// The shim's object, known by address only.
#[repr(C)]
pub(super) struct Jpeg {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Default, Clone, Copy)]
pub(super) struct Header {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) colour: u32,
}

#[repr(C)]
#[derive(Default, Clone, Copy)]
pub(super) struct Columns {
    pub(super) x: u32,
    pub(super) width: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Component {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) across: u32,
    pub(super) down: u32,
    pub(super) quantisation: [u16; 64],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) mcu_x: u32,
    pub(super) mcu_y: u32,
    pub(super) mcus_across: u32,
    pub(super) mcus_down: u32,
    pub(super) components: [Component; 3],
}

impl Default for Window {
    fn default() -> Self {
        let component = Component { x: 0, y: 0, across: 0, down: 0, quantisation: [0; 64] };
        Self { mcu_x: 0, mcu_y: 0, mcus_across: 0, mcus_down: 0, components: [component; 3] }
    }
}

const _: () = assert!(size_of::<Header>() == 12 && size_of::<Columns>() == 8);
const _: () = assert!(size_of::<Component>() == 144 && size_of::<Window>() == 448);

pub(super) type StopFn = unsafe extern "C" fn(*const c_void) -> c_int;

unsafe extern "C" {
    pub(super) fn fb_jpeg_version() -> *const c_char;
    pub(super) fn fb_jpeg_create() -> *mut Jpeg;
    pub(super) fn fb_jpeg_destroy(jpeg: *mut Jpeg);
    pub(super) fn fb_jpeg_open(
        jpeg: *mut Jpeg,
        bytes: *const u8,
        len: usize,
        stop: StopFn,
        context: *const c_void,
        header: *mut Header,
    ) -> c_int;
    pub(super) fn fb_jpeg_declare(jpeg: *mut Jpeg, components: u32, ycbcr: c_int) -> c_int;
    pub(super) fn fb_jpeg_start(
        jpeg: *mut Jpeg,
        by: u32,
        x: u32,
        width: u32,
        careful: c_int,
        columns: *mut Columns,
    ) -> c_int;
    pub(super) fn fb_jpeg_start_window(
        jpeg: *mut Jpeg,
        x: u32,
        y: u32,
        width: u32,
        height: u32,
        window: *mut Window,
    ) -> c_int;
    pub(super) fn fb_jpeg_read_window(
        jpeg: *mut Jpeg,
        window: *const Window,
        into: *mut i16,
    ) -> c_int;
    pub(super) fn fb_jpeg_skip_rows(jpeg: *mut Jpeg, rows: u32) -> c_int;
    pub(super) fn fb_jpeg_read_rows(
        jpeg: *mut Jpeg,
        into: *mut u8,
        stride: usize,
        rows: u32,
    ) -> c_int;
    pub(super) fn fb_jpeg_finish(jpeg: *mut Jpeg) -> c_int;
    pub(super) fn fb_jpeg_close(jpeg: *mut Jpeg);
    pub(super) fn fb_jpeg_message(jpeg: *const Jpeg) -> *const c_char;
    pub(super) fn fb_jpeg_warnings(jpeg: *const Jpeg) -> u32;
}
